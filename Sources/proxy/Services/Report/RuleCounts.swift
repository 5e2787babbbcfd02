package import AppAttest
import Cryptography
import Encodings
import HTTPWire
package import KeyStore
package import Rules
package import Telemetry
package import Verification

/// The verdicts of one rule's requests in some span of time.
///
/// About 24 KiB in the worst case: ``cellsMax`` and ``versionsMax`` limit what clients can make it
/// distinguish. Each of the nine sketches has 512 registers, allocated with its first install.
package struct RuleCounts: Sendable {
    /// The shares for which it counts would-be refusals.
    package static let shares: [(percent: Int, share: Share)] = [1, 5, 25, 100].map { percent in
        (percent, Share(millionths: percent * 10_000) ?? .whole)
    }

    /// Versions that are distinguished, of those that devices have signed, and of those that
    /// clients claim. So claimed versions don't displace signed ones.
    package static let versionsMax = 24
    /// The most combinations of version, environment and verdict. Beyond it, versions are no longer
    /// distinguished.
    package static let cellsMax = 256
    /// The proofs that are distinguished: those of a file, and the two that sign. A reload may
    /// bring others.
    private static let proofsMax = 64
    /// The longest name of a proof that gateways tell each other.
    private static let proofNameMax = 256
    /// The error's standard deviation is 1.04 / √512: 4.6 %.
    private static let sketchBits = 9
    package static let installsError = 0.046

    /// The count of requests that have all these values in common.
    package struct Cell: CountedVerdicts, Sendable {
        struct Kind: Equatable, Sendable {
            /// The place in ``RuleCounts/builds``.
            var build: UInt8
            var environment: KeyEnvironment?
            var outcome: Verdict.Outcome
        }

        let kind: Kind
        package fileprivate(set) var count: UInt64
        package fileprivate(set) var refused: UInt64

        package var environment: KeyEnvironment? { kind.environment }
        package var outcome: Verdict.Outcome { kind.outcome }
    }

    /// The would-be refusals of a share.
    package struct Step: Sendable {
        package fileprivate(set) var requests: UInt64 = 0
        /// Keys that are enrolled here.
        fileprivate var installs: InstallSketch?
        /// Addresses of requests that name no such key.
        fileprivate var addresses: InstallSketch?

        package var installCount: Int { installs?.count ?? 0 }
        package var addressCount: Int { addresses?.count ?? 0 }
    }

    private(set) var builds: [AppBuild] = []
    package private(set) var cells: [Cell] = []
    /// The same by the system that clients claim.
    private(set) var systems = SystemCounts()
    /// One for each of ``shares``.
    package private(set) var steps = [Step](repeating: Step(), count: shares.count)
    private var installs: InstallSketch?
    /// Requests that passed, by their proof; at most ``proofsMax``.
    private var passes: [(proof: ProofKind, count: UInt64)] = []
    /// The same of other gateways, by the name of the proof; at most ``proofsMax``.
    private var namedPasses: [String: UInt64] = [:]
    /// Requests of Android phones by whether Google Play's word meets the rule's `integrity`.
    package private(set) var integrity: (met: UInt64, unmet: UInt64) = (0, 0)
    /// The durations of all requests of the rule, also of those without a verdict.
    package private(set) var times = Histogram()

    package init() {}

    /// The approximate number of different keys that are enrolled here.
    package var installCount: Int { installs?.count ?? 0 }

    package func build(of cell: Cell) -> AppBuild { builds[Int(cell.kind.build)] }

    package subscript(_ kind: VerdictClass) -> UInt64 { cells[kind] }

    package var requests: UInt64 { cells.total }

    /// Requests that were really refused.
    package var refused: UInt64 { cells.refused }

    package mutating func add(nanoseconds: UInt64) { times.add(nanoseconds) }

    /// - hash: of installs and addresses; all counts that are merged have one.
    package mutating func add(_ request: ReportedRequest, by hash: InstallHash = .ofProcess) {
        let refused: UInt64 = request.isRefused ? 1 : 0
        count(
            Cell(
                kind: Cell.Kind(
                    build: place(of: request.build),
                    environment: request.environment,
                    outcome: request.outcome
                ),
                count: 1,
                refused: refused
            )
        )
        systems.add(request)
        if let proof = request.proof { count(1, by: proof) }
        switch request.meetsIntegrity {
        case true?: integrity.met &+= 1
        case false?: integrity.unmet &+= 1
        case nil: break
        }
        if let key = request.install { Self.add(hash.hash(key), to: &installs) }
        guard case .refused(let bucket) = request.fate else { return }
        let client = request.install.map(hash.hash) ?? hash.hash(request.address.network)
        for place in steps.indices where bucket.isWithin(Self.shares[place].share) {
            steps[place].requests &+= 1
            if request.install == nil {
                Self.add(client, to: &steps[place].addresses)
            } else {
                Self.add(client, to: &steps[place].installs)
            }
        }
    }

    /// Requests that passed, by the name of their proof, the most frequent first.
    package var proofs: [(name: String, count: UInt64)] {
        let own = passes.map { ($0.proof.name, $0.count) }
        let names = namedPasses.merging(own, uniquingKeysWith: &+)
        return names.map { ($0.key, $0.value) }.sorted { ($1.1, $0.0) < ($0.1, $1.0) }
    }

    private mutating func count(_ count: UInt64, by proof: ProofKind) {
        if let place = passes.firstIndex(where: { $0.proof == proof }) {
            passes[place].count &+= count
        } else if passes.count < Self.proofsMax {
            passes.append((proof, count))
        }
    }

    private mutating func count(_ count: UInt64, ofProof name: String) {
        guard namedPasses[name] != nil || namedPasses.count < Self.proofsMax else { return }
        namedPasses[name, default: 0] &+= count
    }

    private static func add(_ hash: Int, to sketch: inout InstallSketch?) {
        if sketch == nil { sketch = InstallSketch(bits: sketchBits) }
        sketch?.add(hash: hash)
    }

    private mutating func count(_ cell: Cell) {
        if add(cell, cell.kind) { return }
        var kind = cell.kind
        if cells.count >= Self.cellsMax {
            kind.build = append(AppBuild(builds[Int(kind.build)].source, nil))
            if add(cell, kind) { return }
        }
        cells.append(Cell(kind: kind, count: cell.count, refused: cell.refused))
    }

    /// - Returns: whether there is such a cell. A found cell moves up by one place, so that
    ///   frequent cells are found first.
    private mutating func add(_ cell: Cell, _ kind: Cell.Kind) -> Bool {
        for place in cells.indices where cells[place].kind == kind {
            cells[place].count &+= cell.count
            cells[place].refused &+= cell.refused
            if place > 0 { cells.swapAt(place, place - 1) }
            return true
        }
        return false
    }

    private mutating func place(of build: AppBuild) -> UInt8 {
        var ofSource = 0
        for place in builds.indices {
            if builds[place] == build { return UInt8(truncatingIfNeeded: place) }
            if builds[place].source == build.source, builds[place].version != nil { ofSource += 1 }
        }
        let isKept = build.version == nil || ofSource < Self.versionsMax
        return append(isKept ? build : AppBuild(build.source, nil))
    }

    /// Two sources with ``versionsMax`` versions, and for each source one place without a version:
    /// a byte is enough.
    private mutating func append(_ build: AppBuild) -> UInt8 {
        if let place = builds.firstIndex(of: build) { return UInt8(truncatingIfNeeded: place) }
        builds.append(build)
        return UInt8(truncatingIfNeeded: builds.count - 1)
    }
}

extension RuleCounts: Mergeable {
    package mutating func merge(_ other: RuleCounts) {
        for cell in other.cells {
            var kind = cell.kind
            kind.build = place(of: other.build(of: cell))
            count(Cell(kind: kind, count: cell.count, refused: cell.refused))
        }
        systems.merge(other.systems)
        for (proof, count) in other.passes { self.count(count, by: proof) }
        for (name, count) in other.namedPasses { self.count(count, ofProof: name) }
        integrity.met &+= other.integrity.met
        integrity.unmet &+= other.integrity.unmet
        for place in steps.indices {
            steps[place].requests &+= other.steps[place].requests
            Self.merge(other.steps[place].installs, into: &steps[place].installs)
            Self.merge(other.steps[place].addresses, into: &steps[place].addresses)
        }
        Self.merge(other.installs, into: &installs)
        times.merge(other.times)
    }

    private static func merge(_ other: InstallSketch?, into sketch: inout InstallSketch?) {
        guard let other else { return }
        if sketch == nil {
            sketch = other
        } else {
            sketch?.merge(other)
        }
    }
}

extension InstallHash {
    /// Under a key of this process.
    package static let ofProcess = InstallHash(key: (RandomBytes.word(), RandomBytes.word()))

    package func hash(_ keyID: KeyID) -> Int {
        let bytes = keyID.digest.bytes
        return hash(bytes.span)
    }
}

// What gateways that share a database tell each other. Another form needs another
// ``Report/form``.
extension RuleCounts {
    func write(into out: inout ByteWriter) {
        out.short(integrity.met)
        out.short(integrity.unmet)
        out.short(UInt64(builds.count))
        for build in builds {
            out.byte(UInt8(AppBuild.Source.allCases.firstIndex(of: build.source) ?? 0))
            out.text(build.version?.text ?? "")
        }
        out.short(UInt64(cells.count))
        for cell in cells {
            out.byte(cell.kind.build)
            out.byte(cell.environment?.number ?? 0)
            cell.outcome.write(into: &out)
            out.short(cell.count)
            out.short(cell.refused)
        }
        systems.write(into: &out)
        let proofs = proofs.filter { $0.name.utf8.count <= Self.proofNameMax }
        out.short(UInt64(proofs.count))
        for (name, count) in proofs {
            out.text(name)
            out.short(count)
        }
        out.block(installs?.bytes ?? [])
        for step in steps {
            out.short(step.requests)
            out.block(step.installs?.bytes ?? [])
            out.block(step.addresses?.bytes ?? [])
        }
        times.write(into: &out)
    }

    init(_ reader: inout ByteReader) throws(ByteReader.Fault) {
        integrity = (try reader.count(), try reader.count())
        var told: [AppBuild] = []
        for _ in 0..<(try reader.short(max: UInt64(UInt8.max))) {
            let source = Int(try reader.byte())
            let version = try reader.text(max: AppVersion.bytesMax)
            guard AppBuild.Source.allCases.indices.contains(source) else {
                throw ByteReader.Fault()
            }
            told.append(AppBuild(AppBuild.Source.allCases[source], AppVersion(version)))
        }
        for _ in 0..<(try reader.short(max: UInt64(Self.cellsMax) * 4)) {
            let place = Int(try reader.byte())
            let number = try reader.byte()
            let environment = KeyEnvironment.allCases.first { $0.number == number }
            let outcome = try Verdict.Outcome(&reader)
            guard told.indices.contains(place), (number == 0) == (environment == nil) else {
                throw ByteReader.Fault()
            }
            let kind = Cell.Kind(
                build: self.place(of: told[place]),
                environment: environment,
                outcome: outcome
            )
            let count = try reader.count()
            self.count(Cell(kind: kind, count: count, refused: try reader.count()))
        }
        systems = try SystemCounts(&reader)
        for _ in 0..<(try reader.short(max: UInt64(Self.proofsMax) * 2)) {
            let name = try reader.text(max: Self.proofNameMax)
            count(try reader.count(), ofProof: name)
        }
        installs = try Self.sketch(&reader)
        for place in steps.indices {
            steps[place].requests = try reader.count()
            steps[place].installs = try Self.sketch(&reader)
            steps[place].addresses = try Self.sketch(&reader)
        }
        times = try Histogram(&reader)
    }

    private static func sketch(
        _ reader: inout ByteReader
    ) throws(ByteReader.Fault) -> InstallSketch? {
        let bytes = try reader.block(max: 1 << sketchBits)
        guard let sketch = InstallSketch(bytes: bytes, bits: sketchBits) else {
            throw ByteReader.Fault()
        }
        return bytes.isEmpty ? nil : sketch
    }
}

extension ByteReader {
    /// Reads a number of parts.
    mutating func short(max: UInt64) throws(Fault) -> Int {
        let count = try short()
        guard count <= max else { throw Fault() }
        return Int(count)
    }
}

extension Histogram {
    func write(into out: inout ByteWriter) {
        let filled = filled
        out.byte(UInt8(filled.count))
        for (place, count) in filled {
            out.byte(UInt8(place))
            out.short(count)
        }
        out.short(sum)
    }

    init(_ reader: inout ByteReader) throws(ByteReader.Fault) {
        var filled: [(place: Int, count: UInt64)] = []
        for _ in 0..<(try reader.byte()) {
            let place = Int(try reader.byte())
            filled.append((place, try reader.count()))
        }
        guard let told = Histogram(filled: filled, sum: try reader.count()) else {
            throw ByteReader.Fault()
        }
        self = told
    }
}

extension Verdict.Outcome {
    func write(into out: inout ByteWriter) {
        switch self {
        case .pass: out.byte(0)
        case .refuse(let refusal):
            out.byte(1)
            out.text(refusal.rawValue)
        case .failure(let dependency):
            out.byte(2)
            out.text(dependency.rawValue)
        }
    }

    /// A reason that this version does not have is a fault.
    init(_ reader: inout ByteReader) throws(ByteReader.Fault) {
        let kind = try reader.byte()
        guard kind > 0 else {
            self = .pass
            return
        }
        let name = try reader.text(max: 64)
        let outcome: Verdict.Outcome? =
            kind == 1
            ? Refusal(rawValue: name).map { .refuse($0) }
            : Verdict.Dependency(rawValue: name).map { .failure($0) }
        guard let outcome else { throw ByteReader.Fault() }
        self = outcome
    }
}
