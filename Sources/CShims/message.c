#include "CMessage.h"
#include <stdlib.h>

__thread void *cwi_frame_word __attribute__((tls_model("initial-exec")));
__thread void *cwi_keep_word __attribute__((tls_model("initial-exec")));
__thread uint64_t cwi_serial_word __attribute__((tls_model("initial-exec"))) = -1;
__thread uint64_t cwi_spare_words[CWI_SPARE_BYTES / 8] __attribute__((tls_model("initial-exec")));
cwi_message_table cwi_message_table_words;
cwi_context_hooks cwi_context_hooks_words;

uint64_t cwi_serial_slow(void) {
    static uint64_t threads; /* A24 */
    uint64_t serial;
    do {
        /* ORDER: relaxed. Each thread gets its own number, and no thread reads other data
         * because of it (A24). */
        serial = __atomic_add_fetch(&threads, 1, __ATOMIC_RELAXED) << CWI_SERIAL_BITS;
    } while (serial == 0);
    cwi_serial_word = serial;
    return serial;
}

/* ORDER: sequentially consistent. Whichever comes second sees the other's first store, and `quick`
 * ends as NULL (A23). */
void cwi_message_table_made(void) {
    __atomic_store_n(&cwi_message_table_words.quick, cwi_message_table_words.slots,
                     __ATOMIC_SEQ_CST);
    if (__atomic_load_n(&cwi_context_hooks_words.take, __ATOMIC_SEQ_CST) != NULL)
        __atomic_store_n(&cwi_message_table_words.quick, NULL, __ATOMIC_SEQ_CST);
}

void cwi_context_install(cwi_context_take take, cwi_context_drop drop) {
    cwi_context_hooks_words.drop = drop;
    __atomic_store_n(&cwi_context_hooks_words.take, take, __ATOMIC_SEQ_CST);
    __atomic_store_n(&cwi_message_table_words.quick, NULL, __ATOMIC_SEQ_CST);
}

static pthread_key_t keep_key;
static pthread_once_t keep_once = PTHREAD_ONCE_INIT;
static int keep_has_key;

static void keep_free(void *memory) {
    cwi_keep_word = NULL;
    (*(cwi_keep_release *)memory)(memory);
    free(memory);
}
static void keep_prepare(void) { keep_has_key = pthread_key_create(&keep_key, keep_free) == 0; }

void *cwi_keep_make(size_t size, cwi_keep_release release) {
    pthread_once(&keep_once, keep_prepare);
    void *memory = calloc(1, size);
    if (memory == NULL) return NULL;
    *(cwi_keep_release *)memory = release;
    /* Without a key, the memory outlives the thread. */
    if (keep_has_key) pthread_setspecific(keep_key, memory);
    cwi_keep_word = memory;
    return memory;
}
