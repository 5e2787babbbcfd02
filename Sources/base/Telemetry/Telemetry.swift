// The gateway's counts, and how it shows them.
//
// Each event loop owns one `Tally` and adds to it without locks. A reader asks every event loop for
// a copy and merges the copies. Names are raw values of enums, in the form that Prometheus expects,
// and are API: add, do not rename.
//
// Labels are bounded: rule ids come from the configuration, reasons from one table. Nothing a
// client sends becomes a label.
