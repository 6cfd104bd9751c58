// The page of experiments has nothing to draw: its pictures stand in it.
settle({});
