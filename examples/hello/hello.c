#include <cordwood/cordwood.h>

int main(void) {
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = "logs";
    cw_engine *engine;
    cw_logger *log;
    if (cw_open(&options, &engine) || cw_logger_get(engine, "app.c", &log)) return 1;
    cw_write(log, CW_LEVEL_INFO, "hello from C", 12); /* kept when it returns */
    CW_WARN(log, "order %d is %.1f s late", 7, 2.5);  /* formatted when somebody reads it */
    return cw_close(&engine, 1000);
}
