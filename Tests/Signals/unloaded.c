/* A host that loads the library by dlopen, installs the crash handler, unloads the library and
 * crashes: `unloaded LIBRARY STORE MODE`, like host.c. The handler must still be there. */
#include <cordwood/cordwood.h>
#include <dlfcn.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv) {
    if (argc != 4) return 2;
    alarm(300);
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library) return 3;
    __typeof__(&cw_options_init) init = (__typeof__(init))dlsym(library, "cw_options_init");
    __typeof__(&cw_open) open_store = (__typeof__(open_store))dlsym(library, "cw_open");
    __typeof__(&cw_crash_handler_install) install =
        (__typeof__(install))dlsym(library, "cw_crash_handler_install");
    cw_options options;
    cw_engine *engine = NULL;
    init(&options, sizeof options);
    options.directory = argv[2];
    if (open_store(&options, &engine) != CW_OK) return 4;
    if (strcmp(argv[3], "plain") != 0 && install(engine) != CW_OK) return 5;
    if (dlclose(library) != 0) return 6;
    *(volatile int *)16 = 1;
    return 0;
}
