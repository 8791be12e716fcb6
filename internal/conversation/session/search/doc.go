// Package search finds texts in what the program has on record: full text over documents, such as
// sessions and runs.
//
// A document is a list of texts, and has a name. A [Source] lists its documents, each with a stamp that
// differs when the document has changed, and reads what has changed. An [Index] keeps the words of all
// texts in an SQLite file with FTS5. The file is a cache: it is brought up to date before each search,
// and made anew if it is gone, damaged or of another version. Nothing else writes it.
//
// # Words
//
// A word is a run of letters, digits and the marks on them, in lower case and without the accents of
// Latin, Greek and Cyrillic letters. In scripts that are written without spaces, and in Korean, each
// character is a word. So part of a Chinese sentence is found as a phrase.
//
// # Queries
//
// A query is any text; none is an error. All of its words must be in a text, in any order. A word of
// three characters or more finds words that begin with it: garden finds gardens. Text in quotation marks is a phrase, whose
// words must follow each other and be whole. So do the parts of a word with signs in it, such as
// gpt-4o. Texts with a word or a phrase behind a hyphen, -winter, are left out.
package search
