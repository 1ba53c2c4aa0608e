/* cordwood.Reader's base in C: takes records from the library and makes cordwood.Record of them.
 *
 * A call into the library may read files, so it runs without the GIL; to let it go and to take it
 * again costs more than a record, and beside a busy thread 5 ms. So a cursor takes a batch in one
 * such stretch, of one record first and more each time. What the library answers besides records
 * ends a batch and waits behind it, with its text. Python code (_met) decides what follows from it.
 *
 * One thread at a time: `busy` is set without the GIL. Another thread that comes meanwhile is
 * refused, and its close is left to the one inside. Included by speed.c.
 */
#ifndef CORDWOOD_PYTHON_CURSOR_H
#define CORDWOOD_PYTHON_CURSOR_H

#include "records.h"

#define BATCH_RECORDS 64
#define BATCH_BYTES 65536
/* Programs that logged in turns share their attributes between records as long as these last. */
#define ORIGINS 8
#define DETAIL_BYTES 1024

/* What stands before each image of a batch, and behind it: the attributes, if they are new. */
typedef struct {
    size_t image;  /* bytes */
    size_t origin; /* bytes; 0: those of the record before */
} Entry;

typedef struct {
    PyObject_HEAD
    PyObject *module;
    State *state; /* NULL: not begun */
    cw_reader *reader;
    bool busy;
    bool closing;
    cw_status status;        /* what ended the batch; CW_OK: nothing */
    const cw_field *lent;    /* where the attributes of the last record were */
    size_t lent_count;
    char *batch;             /* entries, one after the other */
    size_t room;
    size_t used;
    size_t at;               /* the next entry */
    int most;                /* records in the next batch */
    PyObject *origin;        /* of the record before */
    PyObject *origins[ORIGINS];
    unsigned newest;
    char detail[DETAIL_BYTES]; /* of status */
} Cursor;

static size_t
rounded(size_t bytes)
{
    return (bytes + 7) & ~(size_t)7;
}

/* Copies a record behind the others; false: no memory. Without the GIL. */
static bool
add_entry(Cursor *self, const cw_record_view *view)
{
    bool known = view->resource != NULL && view->resource == self->lent
                 && view->resource_count == self->lent_count;
    Entry entry = {image_bytes(view), 0};
    if (!known)
        entry.origin = sizeof(size_t) + fields_bytes(view->resource, view->resource_count);
    size_t bytes = sizeof entry + rounded(entry.image) + rounded(entry.origin);
    if (bytes > self->room - self->used) {
        size_t room = Py_MAX(self->used + bytes, (size_t)2 * BATCH_BYTES);
        char *batch = realloc(self->batch, room);
        if (batch == NULL)
            return false;
        self->batch = batch;
        self->room = room;
    }
    char *at = self->batch + self->used;
    memcpy(at, &entry, sizeof entry);
    image_of(view, (Image *)(at + sizeof entry));
    if (!known) {
        char *origin = at + sizeof entry + rounded(entry.image);
        ImageField *fields = (ImageField *)(origin + sizeof(size_t));
        memset(fields, 0, view->resource_count * sizeof *fields); /* compared byte by byte */
        memcpy(origin, &view->resource_count, sizeof(size_t));
        put_fields(fields, (char *)(fields + view->resource_count), view->resource,
                   view->resource_count);
        self->lent = view->resource;
        self->lent_count = view->resource_count;
    }
    self->used += bytes;
    return true;
}

/* Without the GIL. */
static void
take_batch(Cursor *self)
{
    State *state = self->state;
    cw_record_view view;
    memset(&view, 0, sizeof view);
    view.struct_size = sizeof view;
    self->used = self->at = 0;
    self->status = CW_OK;
    if (self->room > 4 * BATCH_BYTES) { /* a large record's */
        free(self->batch);
        self->batch = NULL;
        self->room = 0;
    }
    for (int i = 0; i < self->most && self->used < BATCH_BYTES; i++) {
        self->status = state->next(self->reader, &view);
        if (self->status == CW_OK && !add_entry(self, &view))
            self->status = CW_E_MEMORY;
        if (self->status != CW_OK)
            break;
    }
    if (self->status < 0)
        state->last_error(self->detail, sizeof self->detail);
    self->most = Py_MIN(self->most * 2, BATCH_RECORDS);
}

static void
drop_reader(Cursor *self)
{
    cw_reader *reader = self->reader;
    self->reader = NULL;
    if (reader != NULL)
        self->state->close(&reader);
    free(self->batch);
    self->batch = NULL;
    self->room = self->used = self->at = 0;
}

/* The attributes in these bytes: those of an earlier record where they are the same. */
static int
find_origin(Cursor *self, const char *packed, size_t bytes)
{
    PyObject *found = NULL;
    for (int i = 0; i < ORIGINS && found == NULL; i++) {
        PyObject *known = self->origins[i];
        if (known != NULL && (size_t)PyBytes_GET_SIZE(known) == bytes
            && memcmp(PyBytes_AS_STRING(known), packed, bytes) == 0)
            found = known;
    }
    if (found == NULL) {
        found = PyBytes_FromStringAndSize(packed, (Py_ssize_t)bytes);
        if (found == NULL)
            return -1;
        Py_XSETREF(self->origins[self->newest++ % ORIGINS], found);
    }
    Py_INCREF(found);
    Py_XSETREF(self->origin, found);
    return 0;
}

static PyObject *
next_of_batch(Cursor *self)
{
    Entry entry;
    const char *at = self->batch + self->at;
    memcpy(&entry, at, sizeof entry);
    at += sizeof entry;
    if (entry.origin > 0 && find_origin(self, at + rounded(entry.image), entry.origin) < 0)
        return NULL;
    self->at += sizeof entry + rounded(entry.image) + rounded(entry.origin);
    return new_record(self->state, (const Image *)at, entry.image, self->origin);
}

/* What _met says of an answer that is no record: 1: go on, 0: that was the end, -1: it raised. */
static int
meet(Cursor *self, int tries)
{
    cw_status status = self->status;
    self->status = CW_OK;
    PyObject *number = PyLong_FromLong(status), *count = PyLong_FromLong(tries), *told = NULL;
    PyObject *detail = PyUnicode_DecodeUTF8(self->detail, (Py_ssize_t)strlen(self->detail),
                                            "replace");
    if (number != NULL && count != NULL && detail != NULL)
        told = PyObject_CallMethodObjArgs((PyObject *)self, self->state->met, number, detail,
                                          count, NULL);
    int result = told == NULL ? -1 : PyObject_IsTrue(told);
    Py_XDECREF(number);
    Py_XDECREF(count);
    Py_XDECREF(detail);
    Py_XDECREF(told);
    return result;
}

static PyObject *
cursor_next(PyObject *object)
{
    Cursor *self = (Cursor *)object;
    for (int tries = 0;;) {
        if (self->busy) {
            PyErr_SetString(PyExc_ValueError, "another thread is in this reader");
            return NULL;
        }
        if (self->reader == NULL)
            return NULL;
        if (self->at < self->used)
            return next_of_batch(self);
        if (self->status == CW_OK) {
            self->busy = true;
            Py_BEGIN_ALLOW_THREADS
            take_batch(self);
            if (self->closing)
                drop_reader(self);
            Py_END_ALLOW_THREADS
            self->busy = self->closing = false;
            continue;
        }
        int more = meet(self, tries++);
        if (more <= 0) {
            if (more == 0 && !self->busy)
                drop_reader(self);
            return NULL;
        }
    }
}

static PyObject *
cursor_close(PyObject *object, PyObject *Py_UNUSED(unused))
{
    Cursor *self = (Cursor *)object;
    if (self->busy) {
        self->closing = true;
    } else if (self->reader != NULL) {
        self->busy = true;
        Py_BEGIN_ALLOW_THREADS
        drop_reader(self);
        Py_END_ALLOW_THREADS
        self->busy = self->closing = false;
    }
    Py_RETURN_NONE;
}

/* _begin(address of a cw_reader, which is the cursor's from then on) */
static PyObject *
cursor_begin(PyObject *object, PyTypeObject *type, PyObject *const *args, Py_ssize_t count,
             PyObject *names)
{
    Cursor *self = (Cursor *)object;
    State *state = PyType_GetModuleState(type);
    cw_reader *reader = count == 1 && names == NULL ? address_of(args[0]) : NULL;
    if (state == NULL || state->next == NULL || reader == NULL || self->reader != NULL) {
        if (!PyErr_Occurred())
            PyErr_SetString(PyExc_ValueError, "no library is bound, or the reader is not a reader");
        return NULL;
    }
    if (self->module == NULL) {
        self->module = PyType_GetModule(type);
        Py_XINCREF(self->module);
    }
    self->state = state;
    self->reader = reader;
    self->status = CW_OK;
    self->most = 1;
    Py_RETURN_NONE;
}

static PyObject *
cursor_iterator(PyObject *self)
{
    Py_INCREF(self);
    return self;
}

static void
cursor_free(PyObject *object)
{
    Cursor *self = (Cursor *)object;
    PyTypeObject *type = Py_TYPE(object);
    drop_reader(self);
    Py_CLEAR(self->origin);
    for (int i = 0; i < ORIGINS; i++)
        Py_CLEAR(self->origins[i]);
    Py_CLEAR(self->module);
    type->tp_free(object);
    Py_DECREF(type);
}

static PyMethodDef cursor_methods[] = {
    {"_begin", (PyCFunction)(void (*)(void))cursor_begin,
     METH_METHOD | METH_FASTCALL | METH_KEYWORDS, NULL},
    {"close", cursor_close, METH_NOARGS, "close($self, /)\n--\n\nIdempotent."},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot cursor_slots[] = {
    {Py_tp_doc, "Takes records from the library; see cordwood._reader."},
    {Py_tp_dealloc, cursor_free},
    {Py_tp_iter, cursor_iterator},
    {Py_tp_iternext, cursor_next},
    {Py_tp_methods, cursor_methods},
    {0, NULL},
};

static PyType_Spec cursor_spec = {
    .name = "cordwood._speed.Cursor",
    .basicsize = sizeof(Cursor),
    .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE,
    .slots = cursor_slots,
};

#endif
