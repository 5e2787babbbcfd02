import Foundation

/// A record in an item that carries the mark of the install: where the mark is another one, the
/// record is from an earlier install and counts as none.
struct MarkedRecord: Sendable {
    let items: any SecretItems
    let item: SecretItem
    let mark: @Sendable () async throws -> String

    private struct Found {
        /// What the item holds, of whatever install.
        var stored: Data?
        /// The record of this install.
        var record: Data?
    }

    private static let separator = UInt8(ascii: "\n")

    func read() async throws -> Data? { try await found().record }

    func replace(_ expected: Data?, with record: Data?) async throws -> Bool {
        let found = try await found()
        guard found.record == expected else { return false }
        switch (found.stored, record) {
        case (nil, nil): return true
        case (nil, let record?): return try items.add(try await value(record), as: item)
        case (let stored?, nil): return try items.delete(item, holding: stored)
        case (let stored?, let record?):
            return try items.update(item, holding: stored, to: try await value(record))
        }
    }

    private func found() async throws -> Found {
        var found = Found(stored: try items.value(of: item))
        if let stored = found.stored { found.record = try await record(in: stored) }
        return found
    }

    /// The mark, a line feed, the record.
    private func value(_ record: Data) async throws -> Data {
        Data(try await mark().utf8) + [Self.separator] + record
    }

    private func record(in value: Data) async throws -> Data? {
        guard let end = value.firstIndex(of: Self.separator),
            value[..<end].elementsEqual(try await mark().utf8)
        else { return nil }
        return Data(value[value.index(after: end)...])
    }
}

/// A random text that is made once for an install of an app, and goes when the app is deleted. What
/// outlives the app, such as a Keychain item, carries it to say of which install it is.
///
/// It is in a file rather than in the defaults: of two processes that start for the first time at
/// once, exactly one makes it, and a file that is closed before the first unlock can't be mistaken
/// for one that is not there.
struct InstallMark: Sendable {
    private let file: PrivateFile

    /// A mark in this file. Its folder is made if need be.
    init(file url: URL) { file = PrivateFile(url: url) }

    /// The mark of this install.
    func text() async throws -> String {
        if let mark = try kept() { return mark }
        try FileManager.default.createDirectory(
            at: file.url.deletingLastPathComponent(),
            withIntermediateDirectories: true
        )
        return try await file.locked {
            if let mark = try kept() { return mark }
            let mark = UUID().uuidString
            try file.write(Data(mark.utf8))
            return mark
        }
    }

    /// A file that is something else is replaced.
    private func kept() throws -> String? {
        guard let content = try file.read() else { return nil }
        return UUID(uuidString: String(decoding: content, as: UTF8.self))?.uuidString
    }
}

/// An item of a place that outlives installs, such as the Keychain.
struct SecretItem: Hashable, Sendable {
    let service: String
    let account: String
    /// `nil` for the groups of the process: it writes into the first one, and finds items of all.
    let group: String?
}

/// A place for items. Each call is one step, across all processes.
///
/// A place that can't be read now, as the Keychain before the first unlock, throws. It never says
/// that there is no item.
protocol SecretItems: Sendable {
    /// What an item holds; `nil` where there is none.
    func value(of item: SecretItem) throws -> Data?
    /// Makes an item.
    ///
    /// - Returns: `false` where there is one.
    func add(_ value: Data, as item: SecretItem) throws -> Bool
    /// Changes an item that holds a value.
    ///
    /// - Returns: `false` where it holds another one.
    func update(_ item: SecretItem, holding value: Data, to new: Data) throws -> Bool
    /// Removes an item that holds a value.
    ///
    /// - Returns: `false` where it holds another one.
    func delete(_ item: SecretItem, holding value: Data) throws -> Bool
}
