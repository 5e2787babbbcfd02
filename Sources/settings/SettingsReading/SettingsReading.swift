// Settings as a file states them: read by declarations, with a problem for each fault.
//
//   SourceNode        a piece of a YAML file, with its line
//   MappingReader     reads a mapping key by key
//   Declared, Key     one declaration for each key: reading, schema, reference page, differences
//   ValueForm         how a value is written
//   Stated, Located   what a file states, with its place
//   Problem           a fault, or what is probably not intended; ProblemLog has those of a load
//   ConfigurationFiles, NamedFiles
//                     the files that a configuration names
//   OutboundKeys      what the settings of calls to any other party share
//
// The sections are in `ConfigurationReading`, those of parties in their folders in `Parties`.
