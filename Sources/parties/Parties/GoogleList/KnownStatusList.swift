// Google's list of revoked attestation certificates, as values and machines without I/O, clock or
// lock.
//
//   KnownStatusList      the list in use: its entries, its date, and where it came from
//   StatusListReply      what an answer of Google's says
//   Snapshot             the list that ships in the release
//
// The list decides twice: about a chain that arrives, and again about every enrolled key when a
// newer list comes. So three rules hold. A text that can't be read is no list, and the one before
// stays. A list keeps the date at which Google vouched for it, wherever it is read from; an app's
// `status_max_age` counts from that date. And a list that has lost most of its entries is not
// believed.
//
// `StatusListKeeper` performs their decisions: it owns timers and the file. `CurrentStatusList` has
// the list for the event loops, and `ListedKeyComparer` compares the enrolled keys with it.

package import KeyAttestation
package import OutboundCalls

/// The list in use.
package struct KnownStatusList: Hashable, Sendable {
    /// Where it came from. The raw value is a label of metrics and a word of the log.
    package enum Source: String, CaseIterable, Hashable, Sendable {
        case google
        /// The copy on disk, of an earlier answer.
        case copy
        /// The release.
        case release
    }

    package var list: StatusList
    /// Second of Unix time at which Google vouched for it.
    package var date: Int64
    package var source: Source
    /// Its `ETag`; `nil` where there was none.
    package var tag: String?

    package init(_ list: StatusList, date: Int64, source: Source, tag: String? = nil) {
        self.list = list
        self.date = date
        self.source = source
        self.tag = tag
    }

    /// 2025-01-01. The list is of that month, and the earliest day is the safe one.
    package static let releaseDate: Int64 = 1_735_689_600

    /// The list in the release: Google's list of January 2025, as vvb2060/KeyAttestation has
    /// published it (github.com/vvb2060/KeyAttestation, Apache-2.0).
    package static func ofRelease() throws(StatusListError) -> KnownStatusList {
        KnownStatusList(
            try StatusList(json: PackageResources.google_status_2025_01_json),
            date: releaseDate,
            source: .release
        )
    }
}

/// What an answer to a request for the list comes to.
package enum StatusListReply: Hashable, Sendable {
    case list(KnownStatusList)
    /// 304: the list in use is still the newest, at this second of Unix time.
    case unchanged(at: Int64)
    case refused(Fault)

    /// Why an answer is no list. The raw value is a label of metrics.
    package enum Fault: String, CaseIterable, Hashable, Sendable {
        /// Another status than 200 and 304.
        case status
        /// A text that is no list.
        case unreadable
        /// A list that has lost most of its entries.
        case shrunk
    }

    /// A list with fewer entries may shrink as it likes.
    package static let shrinkMin = 100
    /// Another list has at least one entry for this number of entries of the one before.
    package static let shrinkMax = 2

    /// - fields: those that ``FetchedFields`` reads, as far as the answer has them.
    /// - known: the list in use.
    /// - now: second of Unix time.
    package init(
        status: Int,
        content: [UInt8],
        fields: [String: String],
        known: KnownStatusList?,
        now: Int64
    ) {
        let fields = FetchedFields(fields)
        let date = now - fields.age
        switch status {
        case 304 where known?.tag != nil: self = .unchanged(at: date)
        case 200:
            guard let list = try? StatusList(json: content) else {
                self = .refused(.unreadable)
                return
            }
            // The release's list is old, and says nothing about the length of today's.
            if let known, known.source != .release, known.list.count >= Self.shrinkMin,
                list.count * Self.shrinkMax < known.list.count
            {
                self = .refused(.shrunk)
                return
            }
            self = .list(KnownStatusList(list, date: date, source: .google, tag: fields.tag))
        default: self = .refused(.status)
        }
    }
}

extension KnownStatusList {
    /// The longest copy on disk.
    package static let copyBytesMax = StatusList.bytesMax + FetchedCopy.headBytesMax
    /// The first line of a copy.
    package static let copyTitle = "portcullis-status-list 1"

    /// The list of a copy on disk; `nil` where its text is none.
    package init?(_ copy: FetchedCopy) {
        guard let list = try? StatusList(json: copy.text) else { return nil }
        self.init(list, date: copy.date, source: .copy, tag: copy.tag)
    }
}
