package main

import "os"

// memoryOf returns 0: the memory of a process that has ended is not known.
func memoryOf(*os.ProcessState) int64 { return 0 }
