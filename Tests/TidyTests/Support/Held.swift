/// The lists that someone has to think about before they grow.
enum Held {
    /// Files that may say `@unchecked Sendable` or `nonisolated(unsafe)`, with the reason in few
    /// words. The proof itself stands in the file, right above the declaration.
    static let unchecked: [String: String] = [
        "Sources/base/Cryptography/ECPrivateKey.swift": "keys that nobody changes any more",
        "Sources/client/PortcullisClient/SharedWork.swift": "reached under its lock only",
        "Sources/client/PortcullisClient/Sending/URLSessionTransport.swift":
            "a subclass of OperationQueue without state",
        "Sources/gateway/Gateway/Plane/QueueBound.swift":
            "reached on its queue only, which every access checks",
        "Sources/gateway/Gateway/GatewayServer.swift":
            "two variables that the start sets, before anybody else has it",
        "Sources/keys/PostgreSQLKeyStore/DatabaseConnection.swift": "under its owner's lock",
        "Sources/keys/SQLiteKeyStore/ChangeWatch.swift":
            "Dispatch's sources, set once by the thread that makes the store",
        "Sources/gateway/Gateway/HTTPSCalls/HTTPSCalls.swift":
            "touched on its queue by the one loop, or under its lock",
        "Sources/net/EventLoops/TLS/TLSContext.swift": "an SSL_CTX that nobody changes any more",
        "Sources/net/EventLoops/EventLoop.swift":
            "confined to its queue, which every entry checks; LoopBound's value likewise",
    ]

    /// Files that may say `@exclusivity(unchecked)`, and of which values
    /// (Sources/docs/architecture.md, "Invariants"). Their code makes no call that could reach the
    /// property meanwhile.
    static let exclusivity: [String: String] = [
        "Sources/http/HTTPWire/HTTP2/HTTP2Channel.swift":
            "bytes, memory for them, and how far both directions are",
        "Sources/http/HTTPWire/HTTP2/HTTP2ClientSession.swift":
            "bytes, counters, and lists; nghttp2 calls back outside of them",
        "Sources/http/HTTPWire/HTTP2/HTTP2End.swift":
            "bytes, memory for them, times, and how far both directions are",
        "Sources/http/HTTPWire/HTTP2/HTTP2Session.swift":
            "bytes, counters, and lists; nghttp2 calls back outside of them",
        "Sources/net/EventLoops/Connection.swift": "bytes",
        "Sources/net/EventLoops/Endpoint.swift": "slots; an endpoint is let go of outside of them",
        "Sources/net/EventLoops/EventLoop.swift": "a queue of numbers",
        "Sources/proxy/Proxy/Clients/HTTP1Connection.swift":
            "bytes, and HTTPWire's scanner",
        "Sources/proxy/Proxy/Clients/HTTP1Stream.swift": "HTTPWire's reader and writer of content",
        "Sources/proxy/Proxy/Clients/ClientStream.swift": "what is told of a client",
        "Sources/proxy/Proxy/Clients/HTTP2Connection.swift":
            "a list of streams, counters, and what is awaited",
        "Sources/proxy/Proxy/Clients/HTTP2Stream.swift": "counters, times, and flags",
        "Sources/proxy/Proxy/Origins/HTTP2OriginConnection.swift":
            "a list of streams, counters, times, and what is awaited",
        "Sources/proxy/Proxy/Origins/HTTP2OriginStream.swift":
            "counters, times, and how far both directions are",
        "Sources/proxy/Proxy/Origins/SharedConnections.swift": "lists of connections and streams",
        "Sources/proxy/Proxy/Origins/OriginServer.swift": "lists of streams",
        "Sources/proxy/Proxy/Origins/HTTP1OriginStream.swift":
            "how a request counts at its server, bytes, and HTTPWire's scanner",
        "Sources/proxy/Proxy/Requests/ExchangeState.swift":
            "the machine, content, bytes, the origin's side, and the record for the log",
        "Sources/proxy/Proxy/Requests/HeldBody.swift": "a digest",
        "Sources/proxy/Proxy/Requests/ServiceCall.swift": "bytes",
        "Sources/proxy/Proxy/ProxyLoop.swift":
            "counters of Telemetry and Services, HTTPWire's scratch, and lists of pools and bytes",
    ]

    /// Parts without I/O, clock or lock (Sources/docs/architecture.md, "Invariants").
    static let pureTargets: Set<String> = [
        "AppAttest", "DeviceKey", "Encodings", "HTTPWire", "KeyAttestation", "OutboundCalls",
        "Parties", "RequestBinding", "Rules", "Services", "Telemetry", "Verification",
    ]

    /// Folders of other targets that are as pure, with all that they may import.
    static let pureFolders: [String: Set<String>] = [
        "Sources/proxy/Proxy/Requests/Flow/": [
            "AppAttest", "Cryptography", "HTTPWire", "KeyStore", "Rules", "Services",
            "Verification",
        ]
    ]

    static func isPure(_ source: SwiftSource) -> Bool {
        pureTargets.contains(source.target)
            || pureFolders.keys.contains { source.path.hasPrefix($0) }
    }

    /// Modules that bring I/O or a clock. Synchronization is not among them: an atomic is no lock,
    /// and `impureTypes` has the lock.
    static let impureModules: Set<String> = [
        "CLinux", "Darwin", "Dispatch", "Foundation", "FoundationEssentials",
        "FoundationNetworking", "Glibc", "Logging", "Musl", "System",
    ]

    /// Files of pure targets that run what the others decide: they wait, lock and log, with what
    /// is theirs.
    static let runningFiles: [String: String] = [
        "Sources/parties/Parties/Apple/AppleParty.swift": "the log of the calls to Apple",
        "Sources/parties/Parties/CallClient.swift": "the calls to a party: a queue and its timers",
        "Sources/parties/Parties/DeviceCheck/DeviceCheckClient.swift":
            "the pauses between tries, and used tokens for all event loops",
        "Sources/parties/Parties/DeviceCheck/DeviceCheckClient+Handover.swift":
            "the same used tokens",
        "Sources/parties/Parties/GoogleList/ListedKeyComparer.swift":
            "the comparison with the store, and the time until the next one",
        "Sources/parties/Parties/GoogleList/StatusListKeeper.swift":
            "the time until the list is fetched again, and the list for all event loops",
        "Sources/parties/Parties/PartyContext.swift": "the log that each party gets",
        "Sources/parties/Parties/PlayIntegrity/IntegrityParty.swift":
            "access tokens, for all event loops",
        "Sources/parties/Parties/ProofCalls.swift":
            "the wait for the store, and used tokens for all event loops",
        "Sources/parties/Parties/Receipts/ReceiptParty.swift":
            "receipts are opened on a queue, and the renewer has a log",
        "Sources/parties/Parties/Receipts/ReceiptRenewer.swift":
            "the time until a receipt is due, and the renewal's state",
        "Sources/parties/Parties/TokenIssuers/FetchedKeySet.swift":
            "the time until a set is fetched again",
        "Sources/parties/Parties/TokenIssuers/TokenIssuers.swift": "the sets, for all event loops",
    ]

    /// Files of pure targets that may import Foundation, or FoundationEssentials, for the names of
    /// a public API that users of Foundation expect. What reads a clock or does I/O is refused in
    /// them all the same.
    static let foundationFiles: [String: String] = [
        "Sources/attestation/AppAttest/ObjectRefusal+Foundation.swift":
            "LocalizedError, which localizedDescription asks for, and Date, as a value",
        "Sources/attestation/KeyAttestation/KeyAttestationRefusal+Foundation.swift":
            "LocalizedError, which localizedDescription asks for",
    ]

    /// What Foundation offers that reads a clock or does I/O, in the files above.
    static let impureFoundation: Set<String> = [
        "Bundle", "FileHandle", "FileManager", "NotificationCenter", "Process", "ProcessInfo",
        "RunLoop", "Thread", "Timer", "URL", "URLSession", "contentsOf", "contentsOfFile", "now",
        "timeIntervalSinceNow",
    ]

    /// Types that are a clock, a source of randomness or a lock, and need no import or an allowed
    /// one.
    static let impureTypes: Set<String> = [
        "ContinuousClock", "Mutex", "SuspendingClock", "SystemRandomNumberGenerator", "UTCClock",
    ]

    /// Files of pure targets that lock, with the reason.
    static let lockingFiles: [String: String] = [
        "Sources/policy/Verification/AddressTable.swift":
            "event loops share it, and two may bring a new address in the same moment"
    ]

    /// Folders that import nothing but this, whatever else their target uses: each could be a
    /// target of its own.
    static let closedFolders: [String: Set<String>] = [
        "Sources/gateway/ConfigurationReading/Inspection/": [
            "AppAttest", "Cryptography", "Encodings", "Foundation", "KeyAttestation", "Signatures",
            "Tokens",
        ],
        "Sources/policy/Tokens/Sessions/": [
            "AppAttest", "Cryptography", "DeviceKey", "Encodings", "RequestBinding", "Signatures",
            "Synchronization",
        ],
        "Sources/policy/Tokens/Challenges/": ["Cryptography", "Encodings", "Synchronization"],
        "Sources/gateway/Gateway/HTTPSCalls/": [
            "CCurl", "Dispatch", "OutboundCalls", "Synchronization",
        ],
        "Sources/net/EventLoops/TLS/": ["COpenSSL", "Glibc", "Synchronization"],
    ]

    /// Folders of a target in which a file names no type of a later folder.
    static let layers: [String: [String]] = [
        "Sources/gateway/Gateway/": ["Machine", "Listening", "Plane", "Upkeep", "Control"]
    ]

    /// Modules that only these targets import, or the files of these folders.
    static let owners: [String: Set<String>] = [
        "CCurl": ["Sources/gateway/Gateway/HTTPSCalls/"],
        "CNGHTTP2": ["Sources/http/HTTPWire/HTTP2/"],
        "CPostgreSQL": ["PostgreSQLKeyStore"],
        "COpenSSL": ["Cryptography", "Signatures", "Sources/net/EventLoops/TLS/"],
        "GRDB": ["SQLiteKeyStore"],
        "Yams": ["SettingsReading"],
    ]

    /// What `portcullis` is made of never contains these.
    static let neverShipped: Set<String> = ["PortcullisClientTesting", "SoftwareAuthenticator"]

    /// Modules of the toolchain, which no target declares.
    static let toolchainModules: Set<String> = [
        "Darwin", "DeviceCheck", "Dispatch", "Foundation", "FoundationEssentials",
        "FoundationNetworking", "Glibc", "Security", "Swift", "Synchronization",
    ]

    /// Libraries that no build here can fetch, and what stands in for each: the compiler finds it
    /// for the name that a recipe imports.
    static let standIns: [String: String] = [
        "Alamofire": "AlamofireStandIn", "Apollo": "ApolloStandIn",
        "OpenAPIRuntime": "OpenAPIRuntimeStandIn",
    ]

    /// Files that may sleep: clocks, for which tests have one that they advance, and the one helper
    /// with which tests wait.
    static let clocks: Set<String> = [
        "Sources/client/PortcullisClient/SystemClock.swift", "Tests/TestSupport/Eventually.swift",
    ]

    /// Files that may compare the time with a deadline: the helper with which tests wait, and what
    /// waits for one socket.
    static let waits: Set<String> = [
        "Tests/LoopbackKit/NoticeSocket.swift", "Tests/TestSupport/Eventually.swift",
    ]

    /// Modules of packages that servers are made of. One of these names for a target of ours would
    /// keep such a server from building: the package manager wants names that are unique in all
    /// packages together. Tests/Sample builds beside some of them.
    static let wellKnownModules: Set<String> = [
        "Algorithms", "AppAttestation", "ArgumentParser", "AsyncAlgorithms", "AsyncHTTPClient",
        "Atomics", "AWSLambdaRuntime", "CBOR", "CNIOBoringSSL", "Collections", "Configuration",
        "ConfigurationTesting", "ConsoleKit", "Crypto", "CryptoExtras", "CryptoSwift",
        "DequeModule", "Fluent", "FluentKit", "GRDB", "GRPC", "GRPCCore", "HTTPServer",
        "HTTPTypes", "Histogram", "Hummingbird", "HummingbirdCore", "HummingbirdTLS",
        "HummingbirdTesting", "Instrumentation", "JWT", "JWTKit", "Leaf", "Lifecycle", "Logging",
        "Metrics", "MultipartKit", "MySQLNIO", "NIO", "NIOCore", "NIOHTTP1", "NIOHTTP2",
        "NIOPosix", "NIOSSL", "OTel", "OpenAPIRuntime", "OrderedCollections", "PostgresKit",
        "PostgresNIO", "Prometheus", "RediStack", "RoutingKit", "SQLKit", "SQLite", "SQLiteKit",
        "SQLiteNIO", "ServiceContextModule", "ServiceLifecycle", "Store", "SwiftASN1", "SwiftCBOR",
        "SwiftProtobuf", "SystemPackage", "Tracing", "Transport", "Valkey", "Vapor",
        "WebAuthn", "WebSocketKit", "X509", "Yams",
    ]

    /// Words that say nothing about what a file or type is for, wherever they stand in its name.
    static let emptyWords: Set<String> = [
        "Handler", "Helper", "Helpers", "Manager", "Processor", "Util", "Utilities", "Utility",
        "Utils",
    ]

    /// Words that say nothing when they are the whole name.
    static let emptyNames: Set<String> = ["Common", "Extensions", "Misc", "Types"]
}
