// The map and the tabs: there is one of each.

import { ItemMap } from "./map.js";
import { Panels } from "./panels.js";

export const map = new ItemMap();
export const panels = new Panels(map);
