package auth

import "errors"

// The words of [Reason]. They never change, as logs and counters have them.
const (
	ReasonMissing     = "missing"       // the request has no key
	ReasonMalformed   = "malformed"     // neither a key nor a token
	ReasonUnknown     = "unknown"       // a key that the server does not have
	ReasonRateLimited = "rate_limited"  // too many requests, or too many unknown keys
	ReasonAlgorithm   = "algorithm"     // a token signed in a way that is not accepted
	ReasonUnknownKey  = "unknown_key"   // a token signed with a key that its issuer does not publish
	ReasonSignature   = "signature"     // a token whose signature is wrong
	ReasonExpired     = "expired"       // a token that is too old
	ReasonNotYet      = "not_yet_valid" // a token whose time has not come
	ReasonIssuer      = "issuer"        // a token of another issuer
	ReasonAudience    = "audience"      // a token for another service
	ReasonClaims      = "claims"        // a token without a usable subject, scopes or expiry
	ReasonUnavailable = "unavailable"   // the keys of the issuer are not known yet
)

// Reason returns the word for why a request was refused, "" for an error that does not refuse one for its key, its token
// or its rate.
func Reason(err error) string {
	if e, ok := errors.AsType[*TokenError](err); ok {
		return e.Reason
	}
	if _, ok := errors.AsType[*TooManyError](err); ok {
		return ReasonRateLimited
	}
	switch {
	case errors.Is(err, ErrNoKey):
		return ReasonMissing
	case errors.Is(err, ErrMalformed):
		return ReasonMalformed
	case errors.Is(err, ErrUnknown):
		return ReasonUnknown
	}
	return ""
}

// TokenError reports that a token was refused. Its text is for the log: it may quote the token's claims and its header, but never
// its signature.
type TokenError struct {
	Reason string // one of the words of [Reason]
	Detail string // what exactly, as a clause
}

// Error says so.
func (e *TokenError) Error() string { return "the token is refused: " + e.Detail }
