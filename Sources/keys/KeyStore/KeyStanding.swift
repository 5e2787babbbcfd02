/// Whether a key may be used. Unlike counters it may change both ways, but by commands alone.
package enum KeyStanding: UInt8, Hashable, Sendable {
    case active
    /// Refused, and known to be.
    case revoked
    /// Refused as if it had never been stored. It never comes back: enrolled or imported anew, it
    /// would have its old assertions admitted once more.
    case deleted
}
