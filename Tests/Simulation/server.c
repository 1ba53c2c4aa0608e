/* A server for uploads on the loopback: accepts every body, answers 201, or at times 503 or
 * nothing. It ignores the content: what matters is that archives leave the store. One thread for
 * the life of the process, one connection at a time. */
#define _GNU_SOURCE 1
#include "sim.h"
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

/* Reads one request to its end. false: the connection is closed. */
static bool read_request(int connection) {
    char head[8192];
    size_t got = 0;
    char *end = NULL;
    while (!end && got < sizeof head - 1) {
        ssize_t n = recv(connection, head + got, sizeof head - 1 - got, 0);
        if (n <= 0) return false;
        got += (size_t)n;
        head[got] = 0;
        end = strstr(head, "\r\n\r\n");
    }
    if (!end) return false;
    const char *field = strcasestr(head, "content-length:");
    size_t left = field ? strtoull(field + 15, NULL, 10) : 0;
    size_t there = got - (size_t)(end + 4 - head);
    if (strcasestr(head, "expect: 100-continue"))
        (void)!send(connection, "HTTP/1.1 100 Continue\r\n\r\n", 25, MSG_NOSIGNAL);
    left = left > there ? left - there : 0;
    while (left > 0) {
        char body[65536];
        ssize_t n = recv(connection, body, left < sizeof body ? left : sizeof body, 0);
        if (n <= 0) return false;
        left -= (size_t)n;
    }
    return true;
}

static void *serve(void *argument) {
    int listener = (int)(intptr_t)argument;
    for (uint64_t number = 0;; number++) {
        int connection = accept(listener, NULL, NULL);
        if (connection < 0) continue;
        for (;; number++) {
            if (!read_request(connection)) break;
            if (number % 7 == 3) break; /* the answer is lost */
            const char *answer = number % 7 == 5
                                     ? "HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n"
                                     : "HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n";
            if (send(connection, answer, strlen(answer), MSG_NOSIGNAL) <= 0) break;
        }
        close(connection);
    }
    return NULL;
}

uint32_t server_start(void) {
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    pthread_t thread;
    if (listener < 0 || bind(listener, (struct sockaddr *)&address, sizeof address) != 0 ||
        listen(listener, 16) != 0 ||
        getsockname(listener, (struct sockaddr *)&address, &length) != 0 ||
        pthread_create(&thread, NULL, serve, (void *)(intptr_t)listener) != 0)
        return 0;
    pthread_detach(thread);
    return ntohs(address.sin_port);
}
