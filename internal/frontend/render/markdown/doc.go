// Package markdown renders Markdown for a terminal while it arrives.
//
// Terms. The source is the Markdown text; it comes in pieces that may be cut anywhere. A
// row is a line of output: text with escape sequences for style, complete in itself, so
// that it ends in the terminal's own style. Rows are final or in the tail. Final rows are
// handed out once and never again. The tail is what the unfinished block would look like
// if the source ended here; it is rendered anew whenever the caller asks. A block is a
// paragraph, heading, table, piece of code and so on; containers, which are quotes and
// list items, hold blocks. An inline is emphasis, a link, a code span and so on within a
// block.
//
// The source keeps its shape. A line of source is a line of output (or several, if it is
// wrapped), blank lines are blank lines, code is code, and what can be printed with its
// meaning shown by style alone is printed as it is: the number signs of headings and the fences
// of code stay, dimmed, so that an answer copied from the screen is still Markdown. The
// marks of emphasis, inline code and links are replaced by style; tables are laid out;
// bullets, quote marks and rules are drawn. Reference links, footnotes and HTML are shown
// as they are written. TeX between $…$, $$…$$, \(…\) and \[…\] is left alone.
//
// Blocks and inlines are those of CommonMark 0.31 with the tables, task lists,
// strikethrough and bare links of GitHub, as far as a single pass can know them: a link
// definition that comes later changes nothing that has been shown. Emphasis beside
// Chinese, Japanese and Korean text does not need spaces around it.
//
// What is withheld is bounded. A paragraph's lines become final as soon as the next line
// shows that they belong to no heading or table and no mark is open in them, at the latest
// after 32 lines or 4 KB; a table's rows when it ends or after 100 rows or 32 KB, and then
// the widths of its columns stay as they are; code of a known language 32 lines late,
// because a comment or string that ends there colors what comes before. A line of source
// is cut after 64 KB. All of these are counted in source, so what is finally shown does
// not depend on how it arrived.
//
// Block structure and inlines are scanned by this package and not by the goldmark
// library, which parses whole documents: a stream would be parsed again for every piece,
// and its tree is several times the text. The tests compare the two.
package markdown
