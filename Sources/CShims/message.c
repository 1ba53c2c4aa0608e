#include "CMessage.h"
#include <stdlib.h>

__thread void *cwi_frame_word __attribute__((tls_model("initial-exec")));
__thread void *cwi_keep_word __attribute__((tls_model("initial-exec")));
cwi_message_table cwi_message_table_words;
cwi_context_hooks cwi_context_hooks_words;

static pthread_key_t keep_key;
static pthread_once_t keep_once = PTHREAD_ONCE_INIT;
static int keep_has_key;

static void keep_free(void *memory) {
    cwi_keep_word = NULL;
    free(memory);
}
static void keep_prepare(void) { keep_has_key = pthread_key_create(&keep_key, keep_free) == 0; }

void *cwi_keep_make(size_t size) {
    pthread_once(&keep_once, keep_prepare);
    void *memory = calloc(1, size);
    if (memory == NULL) abort();
    /* Without a key the memory stays when the thread ends. */
    if (keep_has_key) pthread_setspecific(keep_key, memory);
    cwi_keep_word = memory;
    return memory;
}
