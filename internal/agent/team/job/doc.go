// Package job runs commands that continue when the call that started them has ended.
//
// A [List] has the jobs of one conversation: it starts them for the tool execute_command, and offers models tools to read what they print, to
// kill them and to list them. A job is confined as its call was allowed. It ends with its list, and whatever happens to this program ends it,
// too, see package process.
//
// What a job prints is in a file, its log. Positions in the output are numbers of bytes since the start of the job. If the output is longer than
// the log may be, the oldest part is removed and the positions of the rest stay.
package job
