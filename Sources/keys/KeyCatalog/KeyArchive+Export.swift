internal import DeviceKey
package import KeyStore

extension KeyArchive {
    /// Gives the keys in the order of their key ids, in pages, so that a slow reader does not hold
    /// up a gateway. Each page is of one moment; a gateway may write between pages.
    package func forEach(
        _ filter: KeyFilter = KeyFilter(),
        _ body: (KeyRecord) throws -> Void
    ) throws {
        var last: KeyID?
        repeat {
            // Large: a store may have to read more than the page for each.
            let page = try scan(filter, after: last, limit: 20_000)
            for record in page.records { try body(record) }
            last = page.next
        } while last != nil
    }

    /// Writes keys as lines of JSON in the order of their key ids, see ``KeyLine``.
    ///
    /// - `sink`: takes some lines at a time.
    /// Returns how many keys were written.
    package func export(
        _ filter: KeyFilter = KeyFilter(),
        to sink: ([UInt8]) throws -> Void
    ) throws -> Int {
        var count = 0
        var bytes: [UInt8] = []
        try forEach(filter) { record in
            bytes += KeyLine.bytes(record)
            count += 1
            if bytes.count >= 1 << 16 {
                try sink(bytes)
                bytes.removeAll(keepingCapacity: true)
            }
        }
        if !bytes.isEmpty { try sink(bytes) }
        return count
    }
}
