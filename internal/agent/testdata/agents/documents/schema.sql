create table a (b int);
