// Captures libcurl requests of a class that owns its handle: http-cpp STORE URL
//
//     c++ -std=c++17 -I include examples/http/main.cpp -L build/lib -lcordwood -lcurl
#include <cordwood/cordwood.hpp>
#include <curl/curl.h>

#include <cordwood/curl.h>

#include <iostream>
#include <memory>
#include <string>

// A client whose requests are all captured.
class client {
  public:
    explicit client(cw_engine *engine) : engine_(engine), easy_(curl_easy_init()) {}

    CURLcode get(const std::string &url, std::string &body) {
        curl_easy_setopt(easy_.get(), CURLOPT_URL, url.c_str());
        curl_easy_setopt(easy_.get(), CURLOPT_WRITEFUNCTION, &client::take);
        curl_easy_setopt(easy_.get(), CURLOPT_WRITEDATA, &body);
        cw_curl *capture = nullptr;
        cw_curl_attach(engine_, easy_.get(), nullptr, &capture);
        const CURLcode code = curl_easy_perform(easy_.get());
        cw_curl_done(&capture, code);
        return code;
    }

  private:
    static size_t take(char *bytes, size_t size, size_t count, void *body) {
        static_cast<std::string *>(body)->append(bytes, size * count);
        return size * count;
    }

    struct cleanup {
        void operator()(CURL *easy) const { curl_easy_cleanup(easy); }
    };

    cw_engine *engine_;
    std::unique_ptr<CURL, cleanup> easy_;
};

int main(int count, char **words) {
    if (count != 3) return 2;
    auto engine = cordwood::engine::open(words[1]);
    if (!engine) return 1;
    cw_http_options http;
    cw_http_options_init(&http, sizeof http);
    http.enabled = 1;
    if (cw_http_options_set(engine->handle(), &http) != CW_OK) return 1;

    client shop(engine->handle());
    std::string body;
    if (shop.get(words[2], body) != CURLE_OK) return 1;
    std::cout << body;
    return 0;
}
