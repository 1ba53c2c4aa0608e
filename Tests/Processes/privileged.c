/* A host that gets its rights from its file: see privileged.py. It logs, looks for its directory in
 * the environment if told so, and sends to the server that it names itself. Prints "secure 1" if
 * the system gave it more rights than its caller has, and what cw_open says. */
#include <cordwood/cordwood.h>
#include <cordwood/upload.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

int main(int count, char **words) {
    if (count < 3) return 2;
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = strcmp(words[1], "none") == 0 ? NULL : words[1];
    cw_engine *engine = NULL;
    cw_status status = cw_open(&options, &engine);
    char text[400];
    cw_last_error(text, sizeof text);
    printf("secure %lu, %s: %s\n", getauxval(AT_SECURE), cw_status_name(status),
           status ? text : "");
    if (status) return 0;
    for (int i = 2; i < count; i++) {
        cw_target_options target;
        cw_target_options_init(&target, sizeof target);
        target.url = words[i];
        if (cw_target_add(engine, &target, NULL)) return 3;
    }
    cw_logger *logger;
    cw_logger_get(engine, "privileged", &logger);
    cw_write(logger, CW_LEVEL_INFO, "info", 4);
    cw_write(logger, CW_LEVEL_ERROR, "error", 5);
    cw_upload(engine, 10000, NULL, 0);
    return cw_close(&engine, 20000) == CW_E_TIMEOUT;
}
