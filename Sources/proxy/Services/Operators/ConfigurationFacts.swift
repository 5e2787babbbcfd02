/// Which configuration is served, and what became of the last try to replace it.
package struct ConfigurationFacts: Sendable {
    /// The first configuration is 1; each accepted reload adds 1.
    package var generation: UInt64
    /// When the configuration was last read, at the start or for a reload, accepted or refused:
    /// seconds since 1970; `nil` when that is not known.
    package var lastReloadAtSeconds: Int64?
    /// Why the last reload was refused; `nil` when it was not. The generation before it is served
    /// on.
    package var lastReloadError: String?
    /// Reloads that were refused since the start.
    package var refusedReloads: UInt64

    package init(
        generation: UInt64,
        lastReloadAtSeconds: Int64? = nil,
        lastReloadError: String? = nil,
        refusedReloads: UInt64 = 0
    ) {
        self.generation = generation
        self.lastReloadAtSeconds = lastReloadAtSeconds
        self.lastReloadError = lastReloadError
        self.refusedReloads = refusedReloads
    }
}
