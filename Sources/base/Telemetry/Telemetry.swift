// What the gateway counts, and how it is shown.
//
// Each event loop owns one `Tally` and adds to it without locks; to get the sum, ask every event
// loop for a copy and merges them. Names are raw values of enums, in the form that Prometheus
// expects, and are API: add, do not rename.
//
// Labels are bounded: rule ids come from the configuration, reasons from one table. Nothing a
// client sends becomes a label.
