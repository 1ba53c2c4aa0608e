/* Encrypted archives through the C interface. Bad recipients and identity files are refused with
 * the reason and without the secret. Readers have a key, another key, or none. The key pair is the
 * example of the age specification. abi.c includes it. */

#define AGE_RECIPIENT "age1zvkyg2lqzraa2lnjvqej32nkuu0ues2s82hzrye869xeexvn73equnujwj"
#define AGE_IDENTITY "AGE-SECRET-KEY-1GFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPYYSJZGFPQ4EGAEX"
#define AGE_OTHER "AGE-SECRET-KEY-1EGTZVFFV20835NWYV6270LXYVK2VKNX2MMDKWYKLMGR48UAWX40Q2P2LM0"

static void hides_secret(int line) {
    char text[2048] = "";
    cw_last_error(text, sizeof text);
    if (!strstr(text, "GFPYYSJ") && !strstr(text, "gfpyysj")) return;
    printf("abi.c:%d: a secret key stands in cw_last_error\n", line);
    failures++;
}

static void refuse_options(cw_options *options, cw_status status, const char *named) {
    cw_engine *engine = NULL;
    EXPECT(status, cw_open(options, &engine));
    HOLDS(engine == NULL);
    NAMED(named);
    hides_secret(__LINE__);
}

static const char *key_file(const char *name, const char *content) {
    static char path[512];
    snprintf(path, sizeof path, "%s.%s", store, name);
    FILE *file = fopen(path, "w");
    HOLDS(file && fputs(content, file) >= 0 && fclose(file) == 0);
    return path;
}

/* Archives that no identity opens. */
static size_t closed;

static size_t read_encrypted(const char *path, const char *identity) {
    cw_reader_options options = {.struct_size = sizeof options, .kinds = 1u << CW_KIND_LOG,
                                 .identity_file = identity};
    cw_reader *reader = NULL;
    cw_record_view view = {.struct_size = sizeof view};
    size_t count = 0;
    closed = 0;
    EXPECT(CW_OK, cw_reader_open(path, &options, &reader));
    for (cw_status status; reader && (status = cw_reader_next(reader, &view)) != CW_END;) {
        if (status == CW_E_ENCRYPTED) {
            closed++;
            NAMED("encrypted for 1 recipient");
        } else {
            EXPECT(CW_OK, status);
            count++;
        }
    }
    EXPECT(CW_OK, cw_reader_close(&reader));
    return count;
}

/* Before the first engine the library has no thread-exit key of its own. It must not mistake
 * another library's key for it. */
static void case_first_failure(void) {
    enum { KEYS = 16 };
    pthread_key_t keys[KEYS];
    int values[KEYS];
    for (int i = 0; i < KEYS; i++) {
        HOLDS(pthread_key_create(&keys[i], NULL) == 0);
        HOLDS(pthread_setspecific(keys[i], &values[i]) == 0);
    }
    cw_reader *reader = NULL;
    EXPECT(CW_E_NOT_FOUND, cw_reader_open("/nowhere/at/all", NULL, &reader));
    EXPECT(CW_OK, cw_context_set("key", "value"));
    for (int i = 0; i < KEYS; i++) HOLDS(pthread_getspecific(keys[i]) == &values[i]);
    NAMED("/nowhere/at/all");
}

static void case_encrypt(void) {
    cw_options options = defaults();
    const char *refused[][2] = {
        {"", "no recipient"}, {"bob", "begins with age1"}, {AGE_IDENTITY, "secret key"},
        {AGE_RECIPIENT "q", "checksum"}, {AGE_RECIPIENT ",nobody", "begins with age1"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        options.encrypt_to = refused[i][0];
        refuse_options(&options, CW_E_ARGUMENT, refused[i][1]);
        NAMED("encrypt_to");
    }
    options.encrypt_to = NULL;
    options.identity_file = "/nowhere/at/all";
    refuse_options(&options, CW_E_NOT_FOUND, "/nowhere/at/all");
    options.identity_file = key_file("bad", "# a comment\nsomething " AGE_IDENTITY "\n");
    refuse_options(&options, CW_E_ARGUMENT, "line 2");

    options = defaults();
    options.encrypt_to = AGE_RECIPIENT;
    options.identity_file = key_file("key", "# public key: " AGE_RECIPIENT "\n" AGE_IDENTITY "\n");
    cw_engine *engine = open_with(&options);
    cw_logger *log = logger_of(engine, "app");
    for (uint64_t i = 0; i < 1000; i++) EXPECT(CW_OK, numbered(log, 0, i));
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, ARCHIVE_WAIT_MS));
    char key[512];
    snprintf(key, sizeof key, "%s", options.identity_file);
    HOLDS(read_encrypted(store, NULL) < 1000 && closed > 0);
    EXPECT(1000, read_encrypted(store, key));
    EXPECT(0, closed);
    HOLDS(read_encrypted(store, key_file("other", AGE_OTHER "\n")) < 1000 && closed > 0);
    cw_reader *reader = NULL;
    cw_reader_options bad = {.struct_size = sizeof bad, .identity_file = "/nowhere/at/all"};
    EXPECT(CW_E_NOT_FOUND, cw_reader_open(store, &bad, &reader));
    bad.identity_file = key_file("empty", "");
    EXPECT(CW_E_ARGUMENT, cw_reader_open(store, &bad, &reader));
    NAMED("holds no identity");
    EXPECT(CW_OK, cw_close(&engine, 60000));
}
