// The part of Alamofire 5 that AlamofireSigning uses, with the signatures of its documentation.
// That package can't be fetched where this one is built.
//
// The session runs: it adapts, sends, validates, asks the retriers, and tells the monitors, in the
// order of the genuine one.
