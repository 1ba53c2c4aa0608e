/* A use case with two events, the second an error. Prints its id as a server would get it, then
 * sends all events to URL: transactions-c STORE URL */
#include <cordwood/cordwood.h>

#include <stdio.h>

enum { CHECKOUT = 17, BEGUN = 0, PAID = 1 };

static const cw_transaction_name names[] = {
    {CHECKOUT, CW_EVENT_NONE, "checkout"}, {CHECKOUT, BEGUN, "begun"}, {CHECKOUT, PAID, "paid"}};

static int failed(const char *what) {
    char text[512];
    cw_last_error(text, sizeof text);
    fprintf(stderr, "%s: %s\n", what, text);
    return 1;
}

int main(int argc, char **argv) {
    if (argc != 3) return fprintf(stderr, "transactions-c STORE URL\n"), 2;
    cw_options options;
    cw_options_init(&options, sizeof options);
    options.directory = argv[1];
    cw_engine *engine;
    if (cw_open(&options, &engine) != CW_OK) return failed("open");
    cw_transaction_names_set(engine, names, 3);

    cw_target_options target;
    cw_target_options_init(&target, sizeof target);
    target.kind = "transactions";
    target.name = "transactions";
    target.url = argv[2];
    target.auth_token = "token";
    if (cw_target_add(engine, &target, NULL) != CW_OK) return failed("target");

    cw_transaction *checkout;
    if (cw_transaction_begin(engine, CHECKOUT, &checkout) != CW_OK) return failed("begin");
    cw_transaction_attach(checkout); /* this thread's records carry the id */
    cw_transaction_event(checkout, BEGUN, NULL, NULL);
    char traceparent[56];
    cw_transaction_traceparent(checkout, traceparent);
    printf(CW_TRANSACTION_HEADER ": %s\ntraceparent: %s\n", cw_transaction_id(checkout),
           traceparent);
    cw_transaction_event(checkout, PAID, "42", "the card was refused");
    cw_transaction_detach(checkout);
    cw_transaction_end(&checkout);

    cw_upload_result result;
    if (cw_transactions_flush(engine, 30000, &result, sizeof result) < 0) return failed("flush");
    printf("%d events sent\n", (int)result.records);
    cw_close(&engine, 5000);
    return 0;
}
