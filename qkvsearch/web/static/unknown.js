// The page of an unknown address: only what every page has.
import { begin } from "./shell.js";

begin();
