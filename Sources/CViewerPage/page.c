/* The table of the page's files. A file that is not named here is not served. */
#include "CViewerPage.h"

/* The compiler that Swift brings has #embed in every standard. */
#pragma clang diagnostic ignored "-Wc23-extensions"

static const unsigned char index_html[] = {
#embed "page/index.html" suffix(, )
    0};
static const unsigned char dark_css[] = {
#embed "page/dark.css" suffix(, )
    0};
static const unsigned char icon_svg[] = {
#embed "page/icon.svg" suffix(, )
    0};
static const unsigned char style_css[] = {
#embed "page/style.css" suffix(, )
    0};
static const unsigned char app_js[] = {
#embed "page/app.js" suffix(, )
    0};
static const unsigned char api_js[] = {
#embed "page/api.js" suffix(, )
    0};
static const unsigned char state_js[] = {
#embed "page/state.js" suffix(, )
    0};
static const unsigned char views_js[] = {
#embed "page/views.js" suffix(, )
    0};
static const unsigned char logs_js[] = {
#embed "page/logs.js" suffix(, )
    0};
static const unsigned char http_js[] = {
#embed "page/http.js" suffix(, )
    0};
static const unsigned char lines_js[] = {
#embed "page/lines.js" suffix(, )
    0};
static const unsigned char body_js[] = {
#embed "page/body.js" suffix(, )
    0};
static const unsigned char transactions_js[] = {
#embed "page/transactions.js" suffix(, )
    0};
static const unsigned char traces_js[] = {
#embed "page/traces.js" suffix(, )
    0};
static const unsigned char rows_js[] = {
#embed "page/rows.js" suffix(, )
    0};
static const unsigned char histogram_js[] = {
#embed "page/histogram.js" suffix(, )
    0};
static const unsigned char facets_js[] = {
#embed "page/facets.js" suffix(, )
    0};
static const unsigned char detail_js[] = {
#embed "page/detail.js" suffix(, )
    0};
static const unsigned char query_js[] = {
#embed "page/query.js" suffix(, )
    0};
static const unsigned char time_js[] = {
#embed "page/time.js" suffix(, )
    0};
static const unsigned char uploads_js[] = {
#embed "page/uploads.js" suffix(, )
    0};
static const unsigned char parts_js[] = {
#embed "page/parts.js" suffix(, )
    0};
static const unsigned char devices_js[] = {
#embed "page/devices.js" suffix(, )
    0};
static const unsigned char store_js[] = {
#embed "page/store.js" suffix(, )
    0};
static const unsigned char text_js[] = {
#embed "page/text.js" suffix(, )
    0};

/* Each array has a zero at its end, so that an empty file is one, too. */
#define FILE_OF(name, array) {name, array, sizeof array - 1}

static const cvp_file files[] = {
    FILE_OF("index.html", index_html),
    FILE_OF("dark.css", dark_css),
    FILE_OF("icon.svg", icon_svg),
    FILE_OF("style.css", style_css),
    FILE_OF("app.js", app_js),
    FILE_OF("api.js", api_js),
    FILE_OF("state.js", state_js),
    FILE_OF("views.js", views_js),
    FILE_OF("logs.js", logs_js),
    FILE_OF("http.js", http_js),
    FILE_OF("lines.js", lines_js),
    FILE_OF("body.js", body_js),
    FILE_OF("transactions.js", transactions_js),
    FILE_OF("traces.js", traces_js),
    FILE_OF("rows.js", rows_js),
    FILE_OF("histogram.js", histogram_js),
    FILE_OF("facets.js", facets_js),
    FILE_OF("detail.js", detail_js),
    FILE_OF("query.js", query_js),
    FILE_OF("time.js", time_js),
    FILE_OF("uploads.js", uploads_js),
    FILE_OF("parts.js", parts_js),
    FILE_OF("devices.js", devices_js),
    FILE_OF("store.js", store_js),
    FILE_OF("text.js", text_js),
};

size_t cvp_count(void) { return sizeof files / sizeof files[0]; }

cvp_file cvp_at(size_t index) { return files[index]; }
