// The text of `cordwood help query`: docs/QUERY.md in short.

enum QueryHelp {
    static let word = "query"

    static let text = """
        OVERVIEW: How to select records with -q (docs/QUERY.md has all of it).

        cat, tail, grep, stats, export, http and transactions take -q. If it is
        repeated, a record must match all of them.

          level>=warn                 warnings and errors
          logger:app.db               this logger and those below it
          "timed out"                 the message, or a field as key=value, has it
          /time(d )?out/              … matches this expression, as grep -E takes it
          i:refused  i:/refused/      … ASCII letters in either case
          order=7  price>=10          fields; 7 is a number, "7" a text, true a bool
          name!=x                     has a name, and it is not x
          user=*  -user=*             has a user; has none
          order.items.0.sku==x        into a field that is JSON; without .0: any item
          exception.type~/Timeout/    an expression matches the field
          order==7                    cat prints exactly this, whatever the type
          time>=2h  time<2026-11-21   as --since takes it
          kind:http status>=500       captured exchanges; also method, url, path, host
          trace:4bf9  txn:TXN17-      ids that begin so; also span, record_id
          process:shop pid=71 tid=72 thread:worker file:db.c line=40 function:run
          service:shop host.name:dev-7 attributes of the process's resource

        Terms side by side must all match. OR binds weaker, - and NOT bind stronger,
        parentheses group: a b OR -(c d). message:x asks the message alone, and
        fields.level=3 a field whose name means something else here. Put quotes around
        what has blanks, parentheses or : = < > ~ in it; in quotes, \\" and \\\\ stand
        for themselves and \\x41 for a byte.

        EXAMPLES:
          cordwood tail -f logs -q 'level>=warn -logger:noise'
          cordwood cat logs -q 'time>=1h (order=7 OR customer=anna) "timed out"'
          cordwood http logs -q 'status>=500 path:/orders'
        """
}
