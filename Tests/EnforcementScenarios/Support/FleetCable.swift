/// What a gateway reaches the database by. A test cuts it.
protocol FleetCable {
    func turn(_ standing: CableStanding) throws
    func end()
}

/// How it is with a cable.
enum CableStanding {
    case whole
    /// Nothing passes, and neither end is told: as on a network that drops packets.
    case silent
    /// Connections end or can't go on, and no new one is made.
    case cut
}
