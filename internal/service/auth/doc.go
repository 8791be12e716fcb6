// Package auth decides who may do what on a server.
//
// A request carries a key ([Bearer]). [Keys] finds its [Identity]: a subject, which is a person or
// a program, and the scopes of the key. A [Scope] allows one
// kind of request. Sessions and runs have an [Owner], and [Access] is the one rule about
// what a subject may see and change of them.
//
// Keys are made by [NewKey] and are kept as a [Hash] only.
package auth
