// Package wire is what the clients of remote providers share below their formats:
// the connection, the patches of the configuration, and the meaning of failures.
//
// A client asks with the [http.Client] of [NewClient], itself or through a
// provider's SDK, whose own retries have to be off. What belongs to one call, the
// API, the model and the model's patch, travels in the context, see [WithCall].
//
// # Requests
//
// A patch changes URL, body or headers of the finished request: first the model's,
// then the first of the client's rules whose pattern matches the whole model name.
// Redirections are followed if they keep method and host; others would turn the
// request into a GET or take the key elsewhere.
//
// # Values
//
// [String], [Text] and [Int] read JSON of another type than promised: a number for a
// string, null for a number, a list for a text. Servers that speak a dialect of a
// format differ in such things.
//
// # Failures
//
// Every response with another status than 2xx is an error, a [*Rejection]. All
// failures hold a [*provider.Error] or wrap the context's error. The kind follows
// from the server's error code and wording where these are known, else from the
// HTTP status; an exhausted account is [provider.Authentication] although it comes
// as 429, since waiting does not help. Messages hold neither keys nor headers, and
// show at most a piece of a page that is not JSON. Nothing is retried.
//
// A reply has a maximum size, and its server a maximum silence; exceeding the silence
// is [provider.Transient]. The time that the reader spends elsewhere does not count.
package wire
