// A host whose transport sends uploads on a thread of its own, by a libcurl whose transfers are
// captured.
//     http_own STORE URL UPLOADS passes|drops

#include <cordwood/curl.h>
#include <cordwood/upload.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

cw_engine *engine;
bool passes;

std::size_t ignore(char *, std::size_t size, std::size_t count, void *) { return size * count; }

long send(const cw_transport_request *request, const std::vector<char> &body) {
    CURL *easy = curl_easy_init();
    curl_slist *headers = nullptr;
    for (std::size_t i = 0; passes && i < request->header_count; i++)
        headers = curl_slist_append(headers, request->headers[i]);
    headers = curl_slist_append(headers, "Expect:");
    curl_easy_setopt(easy, CURLOPT_URL, request->url);
    curl_easy_setopt(easy, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(easy, CURLOPT_POSTFIELDS, body.data());
    curl_easy_setopt(easy, CURLOPT_POSTFIELDSIZE, static_cast<long>(body.size()));
    curl_easy_setopt(easy, CURLOPT_WRITEFUNCTION, ignore);
    cw_curl *capture = nullptr;
    cw_curl_attach(engine, easy, nullptr, &capture);
    CURLcode code = curl_easy_perform(easy);
    cw_curl_done(&capture, code);
    long status = 0;
    curl_easy_getinfo(easy, CURLINFO_RESPONSE_CODE, &status);
    curl_slist_free_all(headers);
    curl_easy_cleanup(easy);
    return status;
}

cw_status transport(void *, const cw_transport_request *request, cw_transport_response *response) {
    std::vector<char> body(request->body_bytes);
    std::size_t got = 0, count = 0;
    while (got < body.size() &&
           cw_transport_request_read(request, got, body.data() + got, body.size() - got, &count) ==
               CW_OK)
        got += count;
    long status = 0;
    std::thread([&] { status = send(request, body); }).join();
    return cw_transport_response_status(response, static_cast<int32_t>(status));
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 5) return 2;
    passes = std::strcmp(argv[4], "passes") == 0;
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = argv[1];
    if (cw_open(&options, &engine) != CW_OK) return 3;
    cw_http_options capture;
    cw_http_options_init(&capture, sizeof capture);
    capture.enabled = 1;
    if (cw_http_options_set(engine, &capture) != CW_OK) return 4;
    cw_target_options target;
    cw_target_options_init(&target, sizeof target);
    target.url = argv[2];
    target.kind = "http";
    target.transport = transport;
    if (cw_target_add(engine, &target, nullptr) != CW_OK) return 5;
    cw_logger *log = nullptr;
    if (cw_logger_get(engine, "x", &log) != CW_OK) return 6;
    cw_write(log, CW_LEVEL_INFO, "the only record", 15);
    for (int i = 0; i < std::atoi(argv[3]); i++) {
        cw_upload_result result;
        std::memset(&result, 0, sizeof result);
        if (cw_upload(engine, 30000, &result, sizeof result) < 0) return 7;
    }
    return cw_close(&engine, 30000) == CW_OK ? 0 : 8;
}
