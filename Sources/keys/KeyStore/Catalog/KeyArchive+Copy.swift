package import DeviceKey

/// The target of a copy.
package enum CopyTarget: Sendable {
    case store(any KeyArchive)
    /// Only reports what it would write; `nil` where there is no store yet.
    case rehearsal(of: (any KeyArchive)?)

    fileprivate var archive: (any KeyArchive)? {
        switch self {
        case .store(let archive): archive
        case .rehearsal(let archive): archive
        }
    }
}

extension KeyArchive {
    /// Keys of one transaction: few enough that a gateway waits some tens of milliseconds at most
    /// for the target.
    private static var copyPage: Int { 1_000 }

    /// Copies all keys into another store, including deleted ones, and the spent tokens.
    ///
    /// Both stores may be in use. Nothing in the target goes back: a counter takes the higher
    /// value, used counters stay used, and a key that either store has revoked or deleted stays so.
    /// Keys are read in the order of their ids, and each page is written in one transaction. So an
    /// interrupted copy can simply be run again: a key that the target already has costs a
    /// comparison.
    ///
    /// - note: of the keys that the other store has erased.
    /// - told: called after each page with the report so far.
    package func copy(
        to target: CopyTarget,
        _ note: ChangeNote = ChangeNote(now: 0),
        told: (CopyReport) -> Void = { _ in }
    ) throws(StoreProblem) -> CopyReport {
        var all = KeyFilter()
        all.deleted = .included
        var report = CopyReport()
        var last: KeyID?
        repeat {
            let page = try scan(all, after: last, limit: Self.copyPage)
            if let end = page.records.last?.keyID {
                let stored = try target.archive?.records(all, behind: last, through: end)
                try Self.add(page.records, stored: stored ?? [:], to: target, report: &report)
                told(report)
            }
            last = page.next
        } while last != nil
        if case .store(let archive) = target {
            if report.deleted > 0 {
                try archive.deleteMarked(note)
                _ = try archive.eraseDeleted()
            }
            try copySpentTokens(to: archive)
        }
        return report
    }

    /// Has another store spend all tokens that this one has spent.
    package func copySpentTokens(to archive: any KeyArchive) throws(StoreProblem) {
        var last: SpentToken?
        repeat {
            let page = try spentTokens(after: last, limit: Self.copyPage)
            try archive.spend(page)
            last = page.count == Self.copyPage ? page.last : nil
        } while last != nil
    }

    /// The keys of a range of ids, by their ids.
    private func records(
        _ filter: KeyFilter,
        behind first: KeyID?,
        through end: KeyID
    ) throws(StoreProblem) -> [KeyID: KeyRecord] {
        var found: [KeyID: KeyRecord] = [:]
        var last = first
        repeat {
            let page = try scan(filter, after: last, limit: Self.copyPage)
            for record in page.records {
                guard !end.bytes.lexicographicallyPrecedes(record.keyID.bytes) else { return found }
                found[record.keyID] = record
            }
            last = page.next
        } while last != nil
        return found
    }

    private static func add(
        _ records: [KeyRecord],
        stored: [KeyID: KeyRecord],
        to target: CopyTarget,
        report: inout CopyReport
    ) throws(StoreProblem) {
        var news: [KeyRecord] = []
        for record in records {
            switch record.addition(to: stored[record.keyID]) {
            case .none: report.unchanged += 1
            case .differs(let why): report.differs(record.keyID, why)
            case .new: news.append(record)
            }
        }
        let outcomes =
            switch target {
            case .store(let archive): news.isEmpty ? [] : try archive.store(news)
            case .rehearsal: news.map { stored[$0.keyID] == nil ? StoreOutcome.inserted : .merged }
            }
        for (record, outcome) in zip(news, outcomes) {
            switch (outcome, record.status.standing) {
            case (.differs(let other), _):
                // Another command, or a gateway, has stored it since the look-up.
                report.differs(record.keyID, other.difference(from: record) ?? "it was changed")
            case (_, .deleted): report.deleted += 1
            case (.inserted, _): report.inserted += 1
            case (.merged, _): report.raised += 1
            }
        }
    }
}

/// The change that a record would make to a stored one.
private enum Addition {
    case none
    case new
    case differs(String)
}

extension KeyRecord {
    fileprivate func addition(to stored: KeyRecord?) -> Addition {
        guard let stored else {
            // The other store can't ask it for a challenge first, which shows where its counter is.
            return anchor == .held || status.standing == .deleted
                ? .new : .differs("its counter is of an older copy, until its next challenge")
        }
        let identity = KeyIdentity(
            platform: stored.platform,
            publicKey: stored.publicKey,
            appID: stored.appID,
            environment: stored.environment,
            standing: stored.status.standing,
            isErased: stored.isErased
        )
        if status.standing == .deleted, identity.isOf(self) {
            return stored.status.standing == .deleted ? .none : .new
        }
        if let why = identity.difference(from: self) { return .differs(why) }
        var counters = stored.counters
        counters.merge(self.counters)
        let isCovered =
            counters == stored.counters
            && (status.standing != .revoked || stored.status.standing == .revoked)
            && (enrolledAt == nil || stored.enrolledAt != nil)
            && lastUsedAt ?? .min <= stored.lastUsedAt ?? .min
            && (context == nil || stored.context != nil)
            && (chain == nil || stored.chain != nil)
        return isCovered ? .none : .new
    }
}

/// The result of a copy, or of its rehearsal.
package struct CopyReport: Sendable {
    /// The most keys that are listed as ``differing``; further ones are only counted.
    package static let differingMax = 100

    /// Keys that were new.
    package internal(set) var inserted = 0
    /// Keys that had less: a lower counter, or no revocation.
    package internal(set) var raised = 0
    /// Keys that already had all that the source knows, or more.
    package internal(set) var unchanged = 0
    /// Keys that the source has deleted, and the target had not.
    package internal(set) var deleted = 0
    /// Ids of keys that are another key in the target, or were deleted there, with the reason.
    package private(set) var differing: [(keyID: KeyID, why: String)] = []
    package private(set) var differingCount = 0

    /// The number of compared keys of the source.
    package var count: Int { inserted + raised + unchanged + deleted + differingCount }

    mutating func differs(_ keyID: KeyID, _ why: String) {
        differingCount += 1
        if differing.count < Self.differingMax { differing.append((keyID, why)) }
    }
}
