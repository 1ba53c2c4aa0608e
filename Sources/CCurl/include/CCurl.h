#ifndef CORDWOOD_CURL_H
#define CORDWOOD_CURL_H
#include <curl/curl.h>
#endif
