/* Which append a case uses: the library's, or the header's, compiled in here. CW_INFO returns no
 * status, so a case in which a record may be refused does not use it. abi.c includes it before all
 * others. */
#include <cordwood/cordwood.h>
/* All other cases use the library's. */
#undef cw_write

static enum { BY_LIBRARY, BY_CW_INFO, BY_CW_WRITE } form;

/* A NUL follows those bytes. */
__attribute__((noinline)) static cw_status log_text(cw_logger *log, const char *text,
                                                    size_t bytes) {
    if (form == BY_LIBRARY) return cw_write(log, CW_LEVEL_INFO, text, bytes);
    if (form == BY_CW_WRITE) return cw_write_here_(log, CW_LEVEL_INFO, text, bytes);
    CW_INFO(log, "%s", text);
    return CW_OK;
}
/* The same case with the header's append. */
#define BY_FORM(name, suffix, form_)                                                               \
    static void case_##name##suffix(void) {                                                        \
        form = form_;                                                                              \
        case_##name();                                                                             \
    }
#define BY_MACRO(name) BY_FORM(name, _inlined, BY_CW_INFO)
#define BY_TEXT(name) BY_FORM(name, _text, BY_CW_WRITE)
