/// The cable between the network of one gateway and that of the database, which speak TCP over it.
final class NetworkCable: FleetCable {
    /// Where the database is, seen from the gateway.
    let farAddress: String
    private let near: NetworkNamespace
    private let far: NetworkNamespace
    private let farEnd: String
    private static let nearEnd = "database"

    /// - number: 0 to 255; no other cable of the same database has it.
    init(from near: NetworkNamespace, to far: NetworkNamespace, number: Int) throws {
        self.near = near
        self.far = far
        farEnd = "gateway\(number)"
        farAddress = "10.7.\(number).1"
        try near.connect(Self.nearEnd, to: far, as: farEnd)
        try near.ip("address add 10.7.\(number).2/30 dev \(Self.nearEnd)")
        try far.ip("address add \(farAddress)/30 dev \(farEnd)")
        try turn(.whole)
    }

    /// Who is told of a cable: the gateway's host knows when its own end is out, and nothing of the
    /// other one.
    func turn(_ standing: CableStanding) throws {
        switch standing {
        case .whole:
            try far.ip("link set \(farEnd) up")
            try near.ip("link set \(Self.nearEnd) up")
        case .silent: try far.ip("link set \(farEnd) down")
        case .cut: try near.ip("link set \(Self.nearEnd) down")
        }
    }

    /// It goes with the networks.
    func end() {}
}
