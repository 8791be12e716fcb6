// Package normalize brings what passes between a conversation and the API of a provider
// into the form that the other side relies on. The clients of all remote providers use
// it, whatever their format is.
//
// The past is what the conversation of a request holds already: its messages, with the
// tool calls that the assistant has made in them. A made call is one that the model has
// made in the reply at hand, as the server reports it. What a server reports is taken as it
// is where it can be; what it leaves out is counted or estimated here.
//
// Nothing in this package keeps state, and only an image can fail: its functions may be called from several
// goroutines, and change none of their arguments.
package normalize
