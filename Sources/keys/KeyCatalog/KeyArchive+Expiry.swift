extension KeyArchive {
    /// Deletes all keys that were enrolled and last used before a second of Unix time, piece by
    /// piece, so that a running gateway goes on writing.
    ///
    /// - most: no piece is begun when so many are deleted.
    /// - Returns: how many.
    package func expireAll(
        unusedSince second: Int64,
        atMost most: Int = .max,
        _ note: ChangeNote
    ) throws(StoreProblem) -> Int {
        var count = 0
        var row: Int64? = 0
        while let behind = row, count < most {
            let piece = try expire(unusedSince: second, behind: behind, note)
            count += piece.deleted
            row = piece.next
        }
        return count
    }
}
