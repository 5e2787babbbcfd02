import LoadGenerator

/// A fleet on disk.
enum FleetFile {
    static func read(_ path: String) throws(LoadError) -> Fleet {
        guard let fleet = Fleet(text: try TextFile.read(path)) else {
            throw LoadError("\(path): is no fleet; `portcullis-load prepare` makes one")
        }
        return fleet
    }

    static func write(_ path: String, _ fleet: Fleet) throws(LoadError) {
        try TextFile.write(path, fleet.text)
    }
}
