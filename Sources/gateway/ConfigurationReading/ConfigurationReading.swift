// The configuration: the file's words, and their meaning.
//
//   bytes ──SourceNode──▶ tree ──declarations──▶ values with places ──validated──▶ configuration
//
// `SettingsReading` has the tree and the declarations; the settings of parties are in `Parties`.
//
//   GatewaySettings       the keys of the main file, with their defaults
//   RuleSettings          the keys of a rule; its demands are read into those that judge requests
//   StatedConfiguration   a file as it was read, before its parts are compared and its files read
//   GatewayConfiguration  what was meant: complete and consistent; it cannot be wrong
//   ConfigurationLoader   reads the files, the only part that does
//
//   Check                 the report of `portcullis check`
//   Explanation           why a request meets a rule and what is asked of it: `portcullis explain`
//   ConfigurationSchema   the JSON Schema, by asking the readers: `portcullis schema`
//   FirstConfiguration    the files that `portcullis init` writes
//   RouteTest             a list of requests and what is expected of them: `portcullis test`
//   Inspection            `portcullis verify` and `portcullis inspect`
//
// A file is refused or accepted as a whole. All problems are reported at once, each with file,
// line, key, the finding and the allowed values. An option without an effect in its place is an
// error too: its author believes that it protects something.
//
// Every value is text until its key gives it a type: `off`, `on`, `yes` and `1.2` mean what they
// look like, and YAML's rules change no value's type. Durations, sizes, rates and percentages carry
// their unit. Anchors and aliases are refused, files and trees are bounded.

@_exported public import SettingsReading
