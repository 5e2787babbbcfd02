// swift-tools-version: 6.2
import PackageDescription

// deploy/test sets it: our own warnings are errors, those of dependencies are not.
let strict: [SwiftSetting] =
    Context.environment["PORTCULLIS_STRICT"] == nil ? [] : [.treatAllWarnings(as: .error)]
let settings: [SwiftSetting] =
    [
        .enableUpcomingFeature("ExistentialAny"),
        .enableUpcomingFeature("InternalImportsByDefault"),
        .enableUpcomingFeature("MemberImportVisibility"),
    ] + strict

// What a dependency saves us is in the README, a line each.
let grdb: Target.Dependency = .product(name: "GRDB", package: "GRDB.swift")
// SQLite itself, for the tests' store alone: its system calls are replaced there.
let sqlite: Target.Dependency = .product(name: "GRDBSQLite", package: "GRDB.swift")
let yams: Target.Dependency = .product(name: "Yams", package: "Yams")
let crypto: Target.Dependency = .product(name: "Crypto", package: "swift-crypto")
let arguments: Target.Dependency = .product(
    name: "ArgumentParser",
    package: "swift-argument-parser"
)
let logging: Target.Dependency = .product(name: "Logging", package: "swift-log")
let histogram: Target.Dependency = .product(name: "Histogram", package: "hdrhistogram-swift")
let deque: Target.Dependency = .product(name: "DequeModule", package: "swift-collections")

let policy: [Target.Dependency] = [
    "AppAttest", "Cryptography", "HTTPWire", "Octets", "RequestBinding", "Rules",
]
let verdict: [Target.Dependency] = ["Challenges", "Enforcement", "Store"]
let sockets: [Target.Dependency] = ["TLSSession", "Telemetry", "Transport"]
let device: [Target.Dependency] = ["AppAttest", "CBOR", "Cryptography", "Octets", "RequestBinding"]
let wires: [Target.Dependency] = ["CLinux", "TLSSession", "Transport"]
let process: [Target.Dependency] = ["Admin", "Configuration", "Proxy", "SQLiteStore", logging]
let stand: [Target.Dependency] = ["SoftwareAuthenticator", "TestSupport"]
let measured = [
    "AppAttest", "Challenges", "Cryptography", "Enforcement", "HTTPWire", "Octets",
    "RequestBinding", "Rules", "Store",
]
let load: [Target.Dependency] = [
    "Configuration", "Enforcement", "Inspection", "SoftwareAuthenticator", histogram, deque,
]
let client: [Target.Dependency] = ["Configuration", "Load", "SoftwareAuthenticator", arguments]
let fuzzed: [Target.Dependency] = [
    "Challenges", "HTTPWire", "Inspection", "Rules", "SoftwareAuthenticator",
]
let commands: [Target.Dependency] = ["Configuration", "Gateway", "SQLiteStore", "Store", arguments]

// The gateway's release runs where no Swift is installed, and calls of Swift's runtime, of which a
// request makes hundreds, don't go through the tables of a shared library. Foundation's own parts
// are named: only a build that is static altogether finds them by itself.
let standalone: LinkerSetting = .unsafeFlags(
    [
        "-static-stdlib", "-lCoreFoundation", "-l_FoundationCShims", "-l_FoundationCollections",
        "-l_FoundationICU",
    ],
    .when(configuration: .release)
)

extension Target {
    /// A C target that shows Swift what it can't see by itself.
    static func bridge(_ name: String, links: [String] = []) -> Target {
        .target(name: name, linkerSettings: links.map { .linkedLibrary($0) })
    }

    /// A part of the gateway: a library target under Sources.
    static func part(_ name: String, uses: [Target.Dependency] = []) -> Target {
        .target(name: name, dependencies: uses, swiftSettings: settings)
    }

    /// A program, in Sources unless a path is given.
    static func program(
        _ name: String,
        uses: [Target.Dependency],
        path: String? = nil,
        links: [LinkerSetting] = []
    ) -> Target {
        .executableTarget(
            name: name,
            dependencies: uses,
            path: path,
            swiftSettings: settings,
            linkerSettings: links
        )
    }

    /// What several test targets share.
    static func support(_ name: String, uses: [Target.Dependency]) -> Target {
        .target(name: name, dependencies: uses, path: "Tests/" + name, swiftSettings: settings)
    }

    /// Scenarios: client, gateway and origin over loopback.
    static func scenarios(
        _ name: String,
        uses: [Target.Dependency],
        data: [String] = []
    ) -> Target {
        .testTarget(name: name, dependencies: uses, exclude: data, swiftSettings: settings)
    }

    /// The tests of one part.
    static func tests(_ name: String, uses: [Target.Dependency] = []) -> Target {
        .testTarget(
            name: name + "Tests",
            dependencies: [.target(name: name)] + uses,
            swiftSettings: settings
        )
    }
}

let package = Package(
    name: "portcullis",
    products: [
        .library(name: "AppAttest", targets: ["AppAttest"]),
        .library(name: "RequestBinding", targets: ["RequestBinding"]),
        .library(name: "SoftwareAuthenticator", targets: ["SoftwareAuthenticator"]),
        // For Tests/Benchmarks, a package of its own: it sees the products of this one, and what
        // they declare as `package`. Nobody else has a use for it.
        .library(name: "Parts", targets: measured),
        .executable(name: "portcullis", targets: ["portcullis"]),
        .executable(name: "portcullis-demo", targets: ["portcullis-demo"]),
        .executable(name: "portcullis-load", targets: ["portcullis-load"]),
    ],
    dependencies: [
        .package(url: "https://github.com/groue/GRDB.swift", from: "7.10.0"),
        .package(url: "https://github.com/jpsim/Yams", from: "6.2.2"),
        .package(url: "https://github.com/apple/swift-crypto", from: "4.5.2"),
        .package(url: "https://github.com/apple/swift-argument-parser", from: "1.8.2"),
        .package(url: "https://github.com/apple/swift-log", from: "1.16.2"),
        .package(url: "https://github.com/apple/swift-collections", from: "1.6.0"),
        .package(url: "https://github.com/HdrHistogram/hdrhistogram-swift", from: "0.2.0"),
    ],
    targets: [
        // C: what Swift can't see by itself.
        .bridge("COpenSSL", links: ["ssl", "crypto"]),
        .bridge("CLinux"),

        // Pure: no I/O, no clock, no lock.
        .part("Octets"),
        .part("CBOR"),
        .part("Telemetry"),
        .part("HTTPWire", uses: ["Octets"]),
        .part("RequestBinding", uses: ["Octets"]),
        .part("Cryptography", uses: ["COpenSSL", crypto]),
        .part("AppAttest", uses: ["CBOR", "Cryptography", "Octets"]),
        .part("Rules", uses: ["AppAttest", "Cryptography", "HTTPWire", "RequestBinding"]),
        .part("Enforcement", uses: policy + ["Challenges", "Store"]),

        // Shared by the lanes.
        .part("Challenges", uses: ["Cryptography", "Octets"]),
        .part("Store", uses: ["AppAttest", "Challenges", "Cryptography", "Telemetry"]),
        .part("SQLiteStore", uses: ["AppAttest", "Cryptography", "Octets", "Store", grdb, sqlite]),

        // The outside world: files, sockets, the process.
        .part("Configuration", uses: policy + [yams]),
        .part("TLSSession", uses: ["COpenSSL"]),
        .part("Transport", uses: ["CLinux", "TLSSession"]),
        .part("Proxy", uses: policy + verdict + sockets + [deque]),
        .part("Admin", uses: ["HTTPWire", "Telemetry", "Transport"]),
        .part("Gateway", uses: policy + verdict + sockets + process + ["CLinux"]),
        .part("Inspection", uses: ["AppAttest", "CBOR", "Challenges", "Cryptography", "Octets"]),

        // For tests, demonstration and load: never linked into the gateway.
        .part("SoftwareAuthenticator", uses: device),
        .part("Load", uses: policy + sockets + load),

        // Programs.
        .program("portcullis", uses: policy + commands + ["Inspection"], links: [standalone]),
        .program("portcullis-demo", uses: policy + commands + ["SoftwareAuthenticator"]),
        .program("portcullis-load", uses: policy + sockets + client),

        // Tests.
        .support("TestSupport", uses: policy + verdict),
        .program(
            "portcullis-faulty",
            uses: commands + [grdb, sqlite],
            path: "Tests/portcullis-faulty"
        ),
        .support("FuzzTargets", uses: device + process + fuzzed),
        .testTarget(name: "FuzzTests", dependencies: ["FuzzTargets"], swiftSettings: settings),
        .testTarget(name: "TidyTests", swiftSettings: settings),
        .tests("Octets"),
        .tests("CBOR", uses: ["Octets"]),
        .tests("Telemetry"),
        .tests("HTTPWire", uses: ["Octets"]),
        .tests("RequestBinding"),
        .tests("Cryptography", uses: ["Octets"]),
        .tests("AppAttest", uses: ["CBOR", "Cryptography", "Octets", "TestSupport"]),
        .tests("Rules", uses: ["AppAttest", "Cryptography", "HTTPWire", "RequestBinding"]),
        .tests("Enforcement", uses: policy + stand + ["Challenges", "Store"]),
        .tests("Challenges", uses: ["Cryptography", "Octets"]),
        .tests("Store", uses: policy + ["Challenges", "TestSupport"]),
        .tests("SQLiteStore", uses: policy + ["Challenges", "Store", "TestSupport", grdb]),
        .tests("Configuration", uses: policy),
        .tests("TLSSession"),
        .tests("Transport"),
        .tests("Admin", uses: ["HTTPWire", "Telemetry", "Transport"]),
        .tests("Inspection", uses: policy + stand + ["Challenges"]),
        .tests("SoftwareAuthenticator", uses: policy),
        .tests("Load", uses: policy + load + ["Challenges"]),
        .scenarios(
            "HTTPScenarios",
            uses: policy + commands + wires + ["Admin", "Proxy"],
            data: ["Cases"]
        ),
        .scenarios("EnforcementScenarios", uses: policy + commands + stand + ["CLinux", grdb]),
    ],
    swiftLanguageModes: [.v6]
)

// deploy/fuzz sets it: the program gets its main from libFuzzer, which only that build links.
if Context.environment["PORTCULLIS_FUZZ"] != nil {
    package.targets.append(
        .executableTarget(
            name: "FuzzProgram",
            dependencies: ["FuzzTargets", "HTTPWire"],
            path: "Tests/FuzzProgram",
            swiftSettings: settings
        )
    )
}
