/* A resolver that is too late, for LD_PRELOAD: every name takes 40 seconds and is then unknown.
 * Runs on libcurl's own thread. */
#include <netdb.h>
#include <unistd.h>

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints,
                struct addrinfo **result) {
    (void)node, (void)service, (void)hints;
    *result = NULL;
    for (int i = 0; i < 400; i++) usleep(100000);
    return EAI_AGAIN;
}
