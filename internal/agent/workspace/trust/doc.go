// Package trust keeps which directories the user trusts, each with the content that it had then.
//
// The [Content] of a directory is what in it can run or instruct: names, modes and digests of its files. It also has
// the files outside that the directory runs, and the ones that links in it lead to. A [Store] is the file with the
// directories that are trusted. A directory is found there by its path without links, and trusted only while its content
// is the same to the byte; those above and below it are other ones. A [Service] tells what follows from that for an agent,
// and asks the user.
package trust
