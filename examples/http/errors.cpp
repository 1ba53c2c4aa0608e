// Asks a server with libcurl, and throws what failed: errors-cpp STORE URL
//
//     c++ -std=c++17 -I include examples/http/errors.cpp -L build/lib -lcordwood -lcurl
#include <cordwood/cordwood.hpp>
#include <curl/curl.h>

#include <cordwood/curl_error.h>

#include <iostream>
#include <memory>
#include <string>
#include <utility>

// A client whose requests are captured, and whose failures are logged and thrown.
class client {
  public:
    client(const cordwood::engine &engine, cordwood::logger log)
        : engine_(engine.handle()), log_(log), easy_(curl_easy_init()) {}

    std::string get(const std::string &url) {
        std::string body;
        curl_easy_setopt(easy_.get(), CURLOPT_URL, url.c_str());
        curl_easy_setopt(easy_.get(), CURLOPT_WRITEFUNCTION, &client::take);
        curl_easy_setopt(easy_.get(), CURLOPT_WRITEDATA, &body);
        cw_curl *capture = nullptr;
        cw_curl_attach(engine_, easy_.get(), nullptr, &capture);
        const CURLcode code = curl_easy_perform(easy_.get());
        char id[CW_CURL_ID_BYTES];
        cw_curl_done_id(&capture, code, id);

        const cw_network_error *made = nullptr;
        cw_curl_error_from(easy_.get(), code, body.data(), body.size(), id, &made);
        cordwood::network_error error(made);
        if (!error) return body;
        error.log(log_);
        throw std::move(error);
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
    cordwood::logger log_;
    std::unique_ptr<CURL, cleanup> easy_;
};

static const char *word(int32_t outcome) {
    switch (outcome) {
    case CW_OUTCOME_REQUEST_FAILED: return "request_failed";
    case CW_OUTCOME_REDIRECTION: return "redirection";
    case CW_OUTCOME_CLIENT: return "client";
    case CW_OUTCOME_SERVER: return "server";
    default: return "unknown";
    }
}

int main(int count, char **words) {
    if (count != 3) return 2;
    auto engine = cordwood::engine::open(words[1]);
    if (!engine) return 1;
    cw_http_options http;
    cw_http_options_init(&http, sizeof http);
    http.enabled = 1;
    if (cw_http_options_set(engine->handle(), &http) != CW_OK) return 1;

    client shop(*engine, engine->logger("shop.net"));
    try {
        shop.get(words[2]);
    } catch (const cordwood::network_error &error) {
        std::cout << word(error->outcome) << ' ' << error->http_status << ' ' << error->code.data
                  << ' ' << error->transaction_id.data << '\n'
                  << error.text() << '\n'
                  << error.text("de") << '\n';
    }
    return 0;
}
