internal import KeyStore

extension KeyAdministration {
    /// Writes keys as lines of JSON in the order of their key ids, see ``KeyLine``.
    ///
    /// Each page of keys is of one moment; a gateway may write between pages.
    ///
    /// - `sink`: takes some lines at a time.
    /// Returns how many keys were written.
    package func export(
        _ filter: KeyFilter = KeyFilter(),
        to sink: ([UInt8]) throws -> Void
    ) throws -> Int {
        var count = 0
        var octets: [UInt8] = []
        try forEach(filter) { record in
            octets += KeyLine.octets(record)
            count += 1
            if octets.count >= 1 << 16 {
                try sink(octets)
                octets.removeAll(keepingCapacity: true)
            }
        }
        if !octets.isEmpty { try sink(octets) }
        return count
    }
}
