// What the `keys` commands do with a store, whichever it is: list, show, import, export, revoke.
//
//     command ──▶ KeyArchive (what a store can do) ──▶ a database, and the gateways that run on it
//                     │
//                     ├ forEach, export      pages of keys, as lines of JSON
//                     ├ importLines          a file of lines, checked as a whole and then stored
//                     └ match                the key that an operator names
//
// A store brings its pages, its rows and its transactions (`KeyArchive`). The rest is here and the
// same for every store: lines (`KeyLine`), filters (`KeyFilter`), the checks of an import, and what
// operators read (`ImportReport`, `StoreProblem`).
