/* A C host that sends for itself: cw_transport_fn over a plain socket, and the worst answers that a
 * host may give. `host STORE PORT MODE`. Prints the engine's result, as lines of `name value`. One
 * thread: the callbacks run inside cw_upload or on the engine's threads, never concurrently with
 * main's own work. */
#include <arpa/inet.h>
#include <cordwood/cordwood.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static const char *mode;
static int port;
static int calls, asks;

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("failed line-%d\n", __LINE__);                                                  \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static int dial(void) {
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    if (fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof address) == 0) return fd;
    if (fd >= 0) close(fd);
    return -1;
}

static void put(int fd, const void *bytes, size_t count) {
    const char *at = bytes;
    while (count > 0) {
        ssize_t sent = send(fd, at, count, MSG_NOSIGNAL);
        if (sent <= 0) return;
        at += sent;
        count -= (size_t)sent;
    }
}

static cw_status over_socket(const cw_transport_request *request, cw_transport_response *response) {
    int fd = dial();
    if (fd < 0) {
        cw_transport_response_failed(response, "nobody there", true);
        return CW_E_IO;
    }
    const char *path = strchr(strstr(request->url, "://") + 3, '/');
    char line[8192];
    put(fd, line, (size_t)snprintf(line, sizeof line, "%s %s HTTP/1.1\r\nHost: localhost\r\n"
                                   "Connection: close\r\nContent-Length: %" PRIu64 "\r\n",
                                   request->method, path ? path : "/", request->body_bytes));
    for (size_t i = 0; i < request->header_count; i++)
        put(fd, line, (size_t)snprintf(line, sizeof line, "%s\r\n", request->headers[i]));
    put(fd, "\r\n", 2);
    char buffer[50000];
    uint64_t offset = 0;
    for (;;) {
        size_t count = 0;
        cw_status status =
            cw_transport_request_read(request, offset, buffer, sizeof buffer, &count);
        if (status == CW_END) break;
        if (status != CW_OK) {
            close(fd);
            return status;
        }
        put(fd, buffer, count);
        offset += count;
    }
    CHECK(offset == request->body_bytes);

    static char answer[1 << 16];
    size_t got = 0;
    for (ssize_t more; (more = read(fd, answer + got, sizeof answer - 1 - got)) > 0;)
        got += (size_t)more;
    close(fd);
    answer[got] = 0;
    int http = 0;
    if (sscanf(answer, "HTTP/1.%*d %d", &http) != 1) {
        cw_transport_response_failed(response, "no answer", false);
        return CW_E_IO;
    }
    cw_transport_response_status(response, http);
    char *end = strstr(answer, "\r\n\r\n"), *rest = strstr(answer, "\r\n");
    for (rest += 2; rest < end + 2;) {
        char *colon = strchr(rest, ':'), *stop = strstr(rest, "\r\n");
        if (!colon || !stop || colon > stop) break;
        *colon = *stop = 0;
        cw_transport_response_header(response, rest, colon + 1);
        rest = stop + 2;
    }
    cw_transport_response_body(response, end + 4, got - (size_t)(end + 4 - answer));
    return CW_OK;
}

static cw_status nonsense(const cw_transport_request *request, cw_transport_response *response) {
    char byte;
    size_t count = 77;
    if (strcmp(mode, "nulls") == 0) {
        CHECK(cw_transport_request_read(NULL, 0, &byte, 1, &count) == CW_E_ARGUMENT);
        CHECK(cw_transport_request_read(request, 0, NULL, 1, &count) == CW_E_ARGUMENT);
        CHECK(cw_transport_request_read(request, 0, &byte, 0, &count) == CW_E_ARGUMENT);
        CHECK(cw_transport_request_read(request, 0, &byte, 1, NULL) == CW_E_ARGUMENT);
        CHECK(cw_transport_request_read(request, UINT64_MAX, &byte, 1, &count) == CW_END);
        CHECK(cw_transport_request_read(request, request->body_bytes, &byte, 1, &count) == CW_END);
        CHECK(count == 77);
        CHECK(cw_transport_request_stopped(NULL));
        CHECK(!cw_transport_request_stopped(request));
        CHECK(cw_transport_response_status(NULL, 200) == CW_E_ARGUMENT);
        CHECK(cw_transport_response_header(NULL, "a", "b") == CW_E_ARGUMENT);
        CHECK(cw_transport_response_header(response, NULL, "b") == CW_E_ARGUMENT);
        CHECK(cw_transport_response_header(response, "a", NULL) == CW_E_ARGUMENT);
        CHECK(cw_transport_response_body(NULL, "a", 1) == CW_E_ARGUMENT);
        CHECK(cw_transport_response_body(response, NULL, 1) == CW_E_ARGUMENT);
        CHECK(cw_transport_response_body(response, NULL, 0) == CW_OK);
        CHECK(cw_transport_response_body(response, "a", SIZE_MAX) == CW_E_ARGUMENT);
        CHECK(cw_transport_response_failed(NULL, "a", true) == CW_E_ARGUMENT);
        CHECK(cw_credentials_set(NULL, "a", NULL, NULL) == CW_E_ARGUMENT);
        return cw_transport_response_status(response, 200);
    }
    if (strcmp(mode, "huge") == 0) {
        static char block[1 << 20];
        cw_transport_response_status(response, 200);
        cw_status status = CW_OK;
        int blocks = 0;
        while (blocks < 1024 && status == CW_OK) {
            status = cw_transport_response_body(response, block, sizeof block);
            blocks++;
        }
        CHECK(status == CW_E_LIMIT && blocks == 5);
        int headers = 0;
        while (cw_transport_response_header(response, "x", "y") == CW_OK) headers++;
        CHECK(headers == 64);
        return CW_OK;
    }
    if (strcmp(mode, "second-way") == 0) {
        cw_transport_response_header(response, "Retry-After", "3600");
        cw_transport_response_failed(response, "the first way", true);
        return cw_transport_response_status(response, 200);
    }
    if (strcmp(mode, "taken-back") == 0) {
        cw_transport_response_status(response, 200);
        return cw_transport_response_failed(response, "half an answer", false);
    }
    if (strcmp(mode, "anew") == 0) {
        static char block[4 << 20];
        cw_transport_response_header(response, "Early", "y");
        cw_transport_response_status(response, 503);
        for (int i = 1; i < 64; i++)
            CHECK(cw_transport_response_header(response, "Retry-After", "3600") == CW_OK);
        CHECK(cw_transport_response_header(response, "x", "y") == CW_E_LIMIT);
        CHECK(cw_transport_response_body(response, block, sizeof block) == CW_OK);
        CHECK(cw_transport_response_status(response, 200) == CW_OK);
        CHECK(cw_transport_response_body(response, block, sizeof block) == CW_OK);
        return cw_transport_response_header(response, "x", "y");
    }
    if (strcmp(mode, "silent") == 0) return CW_OK;
    if (strcmp(mode, "odd") == 0) return 12345;
    if (strcmp(mode, "failed") == 0) {
        cw_transport_response_status(response, 200);
        return CW_E_IO; /* the returned status decides */
    }
    if (strcmp(mode, "cause") == 0) {
        cw_transport_response_failed(response, "line\nof the host's", true);
        return CW_E_IO;
    }
    if (strcmp(mode, "null-cause") == 0) {
        cw_transport_response_failed(response, NULL, false);
        return CW_OK;
    }
    return cw_transport_response_status(response, atoi(mode));
}

static cw_status transport(void *user, const cw_transport_request *request,
                           cw_transport_response *response) {
    calls++;
    CHECK(user == &calls && request->struct_size == sizeof *request);
    CHECK(request->connect_timeout_ms == 10000 && request->timeout_ms >= 60000);
    return strcmp(mode, "socket") == 0 || strcmp(mode, "token") == 0
               ? over_socket(request, response)
               : nonsense(request, response);
}

static cw_status credentials(void *user, const char *target, const char *challenge,
                             cw_credentials *out) {
    asks++;
    CHECK(user == &calls && strcmp(target, "c") == 0);
    printf("challenge %s\n", challenge ? challenge : "none");
    CHECK(cw_credentials_set(out, "a\nb", NULL, NULL) == CW_E_ARGUMENT);
    CHECK(cw_credentials_set(out, NULL, "a:b", "c") == CW_E_ARGUMENT);
    char word[] = "new-secret";
    CHECK(cw_credentials_set(out, word, NULL, NULL) == CW_OK);
    memset(word, 0, sizeof word);
    return CW_OK;
}

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    port = atoi(argv[2]);
    mode = argv[3];
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = argv[1];
    options.upload_interval_s = 3600;
    cw_engine *engine;
    CHECK(cw_open(&options, &engine) == CW_OK);
    cw_logger *log;
    CHECK(cw_logger_get(engine, "app", &log) == CW_OK);
    CHECK(cw_write(log, CW_LEVEL_INFO, "from C", 6) == CW_OK);

    cw_target_options target;
    cw_target_options_init(&target, sizeof target);
    target.name = "c";
    target.kind = "http";
    target.format = "ndjson";
    target.url = "http://localhost/in?key=url-secret";
    target.auth_token = "old-secret";
    target.user = &calls;
    target.transport = transport;
    if (strcmp(mode, "token") == 0) target.credentials = credentials;
    CHECK(cw_target_add(engine, &target, NULL) == CW_OK);

    cw_upload_result result;
    cw_status status = cw_upload(engine, 30000, &result, sizeof result);
    printf("status %s\n", cw_status_name(status));
    printf("http %d\noutcome %d\nuploaded %u\nwaiting %u\n", result.last_http_status,
           result.last_outcome, result.uploaded, result.waiting);
    printf("calls %d\nasks %d\n", calls, asks);
    CHECK(cw_close(&engine, 10000) == CW_OK);
    return 0;
}
