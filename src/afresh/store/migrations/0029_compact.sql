select 1; -- the tables that both databases have stay as they are
