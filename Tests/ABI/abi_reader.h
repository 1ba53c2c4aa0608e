/* What a reader says about the origin of a record, in structs of every size. */

/* Reads the only record of logger "origin" into the first `size` bytes of `room`. */
static cw_status origin_read(void *room, uint32_t size) {
    cw_reader_options options = {.struct_size = sizeof options, .logger = "origin"};
    cw_reader *reader = NULL;
    EXPECT(CW_OK, cw_reader_open(store, &options, &reader));
    memcpy(room, &size, sizeof size);
    cw_status status = cw_reader_next(reader, room);
    EXPECT(CW_OK, cw_reader_close(&reader));
    return status;
}

static void case_origin(void) {
    enum { FIRST = sizeof(cw_record_view), ROOM = 1024, SIZE_MAX_KNOWN = 65536 };
    static _Alignas(16) unsigned char room[ROOM], whole[SIZE_MAX_KNOWN + 1];
    cw_record_view *view = (cw_record_view *)(void *)room;
    cw_options options = defaults();
    cw_engine *engine = open_with(&options);
    EXPECT(CW_OK, cw_resource_set(engine, "service.name", "shop"));
    EXPECT(CW_OK, cw_resource_set(engine, "user.id", "u1"));
    EXPECT(CW_OK, cw_resource_set(engine, "gone", "x"));
    EXPECT(CW_OK, cw_resource_set(engine, "gone", ""));
    put(logger_of(engine, "origin"), "hello");

    /* Nothing beyond the struct is written. */
    memset(room, 0xA5, sizeof room);
    EXPECT(CW_OK, origin_read(room, FIRST));
    EXPECT(FIRST, view->struct_size);
    EXPECT(5, view->message.length);
    for (size_t at = FIRST; at < ROOM; at++)
        if (room[at] != 0xA5) EXPECT(0xA5, room[at]);
    EXPECT(CW_E_STRUCT_SIZE, origin_read(room, FIRST - 1));
    EXPECT(CW_E_STRUCT_SIZE, origin_read(room, 0));
    EXPECT(CW_E_STRUCT_SIZE, origin_read(whole, SIZE_MAX_KNOWN + 1));
    EXPECT(CW_OK, origin_read(whole, SIZE_MAX_KNOWN));

    /* A host of a later version: fields that the library lacks are zero. */
    memset(room, 0xA5, sizeof room);
    EXPECT(CW_OK, origin_read(room, ROOM));
    for (size_t at = sizeof *view; at < ROOM; at++)
        if (room[at] != 0) EXPECT(0, room[at]);

    /* The reader is closed: what it lent is gone, but the id is the host's. */
    uint8_t id[24], tail[8];
    memcpy(id, view->record_id, sizeof id);
    for (int at = 0; at < 8; at++) tail[at] = (uint8_t)(view->sequence >> (56 - 8 * at));
    EXPECT(0, memcmp(id + 16, tail, sizeof tail));
    EXPECT(CW_OK, cw_roll(engine));
    EXPECT(CW_OK, cw_archive_wait(engine, ARCHIVE_WAIT_MS));
    EXPECT(CW_OK, cw_close(&engine, 60000));

    cw_reader *reader = NULL;
    cw_reader_options all = {.struct_size = sizeof all, .logger = "origin"};
    EXPECT(CW_OK, cw_reader_open(store, &all, &reader));
    view->struct_size = sizeof *view;
    EXPECT(CW_OK, cw_reader_next(reader, view));
    EXPECT(0, memcmp(id, view->record_id, sizeof id));
    HOLDS(view->process_name.length > 0);
    int found = 0;
    for (size_t at = 0; at < view->resource_count; at++) {
        const cw_field *field = &view->resource[at];
        EXPECT(CW_TYPE_STRING, field->type);
        HOLDS(field->value.s.length > 0);
        cw_str key = field->key, value = field->value.s;
        if (key.length == 12 && memcmp(key.data, "service.name", 12) == 0)
            found += value.length == 4 && memcmp(value.data, "shop", 4) == 0;
        if (key.length == 7 && memcmp(key.data, "user.id", 7) == 0)
            found += value.length == 2 && memcmp(value.data, "u1", 2) == 0;
        if (key.length == 9 && memcmp(key.data, "host.name", 9) == 0) found += 1;
        HOLDS(!(key.length == 4 && memcmp(key.data, "gone", 4) == 0));
    }
    EXPECT(3, found);
    EXPECT(CW_OK, cw_reader_close(&reader));
}

/* ── Fields that are JSON ── */

static const char *const json_texts[] = {
    /* These are JSON, */
    "{\"items\":[{\"sku\":\"x\"},null]}", " [ 1 ,\n true ] ", "7", "\"caf\xC3\xA9\"",
    /* these are not. */
    "{\"a\":1", "", "\"caf\xE9\"", "[1] [2]", "\"\\ud800\"",
};
enum { JSON_GOOD = 4, JSON_TEXTS = sizeof json_texts / sizeof *json_texts };

static void json_each(const cw_record_view *view, void *user) {
    ++*(int *)user;
    EXPECT(JSON_TEXTS + 1, view->field_count);
    for (size_t at = 0; at < JSON_TEXTS && at < view->field_count; at++) {
        const cw_field *field = &view->fields[at];
        EXPECT(at < JSON_GOOD ? CW_TYPE_JSON : CW_TYPE_STRING, field->type);
        EXPECT(strlen(json_texts[at]), field->value.s.length);
        if (field->value.s.length == strlen(json_texts[at]))
            EXPECT(0, memcmp(json_texts[at], field->value.s.data, field->value.s.length));
    }
    EXPECT(CW_TYPE_INT, view->fields[view->field_count - 1].type);
}

static void json_cut_each(const cw_record_view *view, void *user) {
    *(size_t *)user = view->fields[0].value.s.length;
    EXPECT(1, view->field_count);
    EXPECT(CW_TYPE_STRING, view->fields[0].type);
}

/* JSON is read as JSON, live and from the archive. Everything else is kept as a string. */
static void case_json(void) {
    cw_options options = defaults();
    options.segment_bytes = 64u << 10;
    cw_engine *engine = open_with(&options);
    cw_field fields[JSON_TEXTS + 1] = {{{"k", 1}, CW_TYPE_JSON, {0}}};
    for (size_t at = 0; at < JSON_TEXTS; at++) {
        fields[at] = (cw_field){{"k", 1}, CW_TYPE_JSON, {0}};
        fields[at].value.s = (cw_str){json_texts[at], strlen(json_texts[at])};
    }
    fields[JSON_TEXTS] = (cw_field){{"n", 1}, CW_TYPE_INT, {7}};
    cw_record record = {.struct_size = sizeof record, .level = CW_LEVEL_INFO};
    record.fields = fields;
    record.field_count = JSON_TEXTS + 1;
    EXPECT(CW_OK, cw_write_record(logger_of(engine, "json"), &record));
    for (int archived = 0; archived < 2; archived++) {
        int seen = 0;
        EXPECT(1, read_logs(json_each, &seen));
        EXPECT(1, seen);
        if (!archived) {
            EXPECT(CW_OK, cw_roll(engine));
            EXPECT(CW_OK, cw_archive_wait(engine, ARCHIVE_WAIT_MS));
        }
    }
    fields[0].value.s = (cw_str){NULL, 4};
    EXPECT(CW_E_ARGUMENT, cw_write_record(logger_of(engine, "json"), &record));
    NAMED("field 0 has a value that is NULL");
    EXPECT(CW_OK, cw_close(&engine, 60000));
}

/* JSON that fits no segment is cut, and is no longer JSON. */
static void case_json_cut(void) {
    cw_options options = defaults();
    options.segment_bytes = 64u << 10;
    cw_engine *engine = open_with(&options);
    size_t length = 200000, kept = 0;
    char *text = malloc(length);
    if (!text) exit(1);
    memset(text, '1', length); /* cut, it would still be a number */
    cw_field field = {{"k", 1}, CW_TYPE_JSON, {0}};
    field.value.s = (cw_str){text, length};
    cw_record record = {.struct_size = sizeof record, .level = CW_LEVEL_INFO};
    record.fields = &field;
    record.field_count = 1;
    EXPECT(CW_OK, cw_write_record(logger_of(engine, "json"), &record));
    EXPECT(1, read_logs(json_cut_each, &kept));
    HOLDS(kept > 40000 && kept < 65536);
    EXPECT(CW_OK, cw_close(&engine, 60000));
    free(text);
}
