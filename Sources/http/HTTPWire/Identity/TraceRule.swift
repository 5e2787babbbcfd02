/// What becomes of a request's trace (W3C Trace Context). The raw value is the word of the
/// configuration.
package enum TraceRule: String, CaseIterable, Sendable {
    /// A trusted proxy's goes on; without one there is none. The default: a trace that begins here
    /// would decide for all origins which of their requests are recorded.
    case carry
    /// Without a trusted proxy's, one begins that asks nobody to record it.
    case begin
    /// The same, and asks to be recorded.
    case beginSampled = "begin-sampled"
}
